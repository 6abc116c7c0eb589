"""Write RUN as one self-contained HTML file, or as parts of a product's page.

Examples:
  rigctl report
  rigctl report latest~1 -o page.html
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.options import Anonymous, RunId, StoreAddress, complete_run
from rigctl.cli.output import PAGES_FOLDER, choose_page, find_pages_folder

if TYPE_CHECKING:
    from rigctl.analysis.run_view import RunView
    from rigctl.product.theme import Theme


def write_report(
    run: RunId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write to this file (default: where `run` writes it, SCENARIO-RUN.html in $RIGCTL_REPORTS, else in "
            "rigctl-reports).",
        ),
    ] = None,
    theme: Annotated[
        Path | None,
        typer.Option(
            "--theme", metavar="FILE", help="Theme file: name, logo, colours, fonts, columns, words, advertised rate."
        ),
    ] = None,
    fragment: Annotated[
        Path | None,
        typer.Option("--fragment", metavar="DIR", help="Write HTML for a product page, with pictures, to DIR."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="RUN",
            help="Write a page that compares RUN with this run.",
            autocompletion=complete_run,
        ),
    ] = None,
    anonymous: Anonymous = False,
    store: StoreAddress = None,
) -> None:
    from rigctl.cli.stored_runs import read_view, readable_store  # `report --help` does not read a store
    from rigctl.store import open_store

    paged = output is not None or other is not None or fragment is None
    folder = (find_pages_folder(output) or Path(PAGES_FOLDER)) if paged else Path()
    own = None
    if theme is not None:
        from rigctl.product.theme import load_theme

        own = load_theme(theme)
    with open_store(store, create=False) as opened:
        runs = [opened.run_id(name) for name in (run or "latest", other) if name is not None]
        with readable_store(opened, list(dict.fromkeys(runs)), anonymous=anonymous, together=True) as source:
            first, *others = (read_view(source, name) for name in runs)
            if fragment is not None:
                _write_fragment(first, own, fragment)
            if paged:
                _write_page(first, next(iter(others), None), own, choose_page(first.info, output, folder))


def _write_page(first: "RunView", second: "RunView | None", theme: "Theme | None", path: Path) -> None:
    from rigctl.analysis.nights.comparison import compare_runs
    from rigctl.report.comparison import comparison_document, report_of
    from rigctl.report.printers.html import write_page

    if second is not None:
        content = comparison_document(compare_runs(second, first))
    else:
        content, _ = report_of(first)
    path.parent.mkdir(parents=True, exist_ok=True)
    look = None
    if theme is not None:
        from rigctl.product.page import brand

        look = brand(theme)
    write_page(content, path, look)
    print(path.resolve())


def _write_fragment(view: "RunView", theme: "Theme | None", folder: Path) -> None:
    from rigctl.base.files import write_files
    from rigctl.product.claim import NoClaim
    from rigctl.product.content import product
    from rigctl.product.page import files_of
    from rigctl.product.theme import Theme

    content = product(view, theme or Theme(view.plan.rig_name))
    files = files_of(content)
    write_files(files, folder)
    if isinstance(content.claim, NoClaim):
        typer.echo(str(content.claim), err=True)
    for name in files:
        print((folder / name).resolve())
