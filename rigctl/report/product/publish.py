"""Everything that is published of a product, as files in a folder: made whole before the first is written."""

from collections.abc import Mapping
from pathlib import Path

from rigctl.base.errors import InputError
from rigctl.report.printers.files import write_whole
from rigctl.report.product import pictures
from rigctl.report.product.content import Product
from rigctl.report.product.data import product_json
from rigctl.report.product.drawing import png
from rigctl.report.product.fragment import fragment


def files_of(product: Product) -> dict[str, bytes]:
    """By name."""
    drawn: dict[str, str] = {"table": pictures.table(product)}
    if bars := pictures.bars(product):
        drawn["chart"] = bars
    drawn |= {f"chart-{number}": svg for number, svg in enumerate(pictures.charts(product), 1)}
    made = {"fragment.html": fragment(product).encode(), "product.json": product_json(product).encode()}
    for name, svg in drawn.items():
        made |= {f"{name}.svg": svg.encode(), f"{name}.png": png(svg)}
    return made | {"og.png": png(pictures.card(product), scale=1)}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Raises `InputError` where the folder, or a file in it, cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there: {error.strerror}. Name another place") from error
    for name, content in files.items():
        write_whole(folder / name, content, follow=False)  # others may have made links in the folder
