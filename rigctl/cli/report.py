"""`rigctl report`: one run as a self-contained HTML file, or what a company publishes of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.completion import run_ids
from rigctl.cli.options import RunId, StoreAddress

if TYPE_CHECKING:
    from rigctl.records import Repetition, RunInfo
    from rigctl.report.product.theme import Theme
    from rigctl.store import Store


def report(
    run: RunId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="Write to this file (default: SCENARIO-RUN.html here)."
        ),
    ] = None,
    theme: Annotated[
        list[Path] | None,
        typer.Option(
            "--theme",
            metavar="FILE",
            help="Use name, logo, colours, fonts, columns, words and claim of this file; a second one is of --compare.",
        ),
    ] = None,
    fragment: Annotated[
        Path | None,
        typer.Option(
            "--fragment",
            metavar="DIR",
            help="Write HTML for a shop's page, pictures and data to this folder.",
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--compare", metavar="RUN", help="Show this run beside it, as another product.", autocompletion=run_ids
        ),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write RUN as one self-contained HTML file, or as parts of a product's page."""
    from rigctl.cli.output import check_page
    from rigctl.store import open_store

    if output is not None or fragment is None:
        check_page(output)
    themes = _themes(theme or [], other)
    with open_store(store, create=False) as opened:
        first = _read(opened, run)
        second = _read(opened, other) if other is not None else None
    if fragment is not None:
        _publish(first, second, themes, fragment)
    if output is not None or fragment is None:
        _page(first, second, themes, output)


def _themes(files: list[Path], other: str | None) -> "list[Theme]":
    if not files:
        return []
    from rigctl.base.errors import InputError
    from rigctl.report.product.theme import load_theme

    if len(files) > (1 if other is None else 2):
        raise InputError("--theme: give one file, and one more with --compare RUN")
    return [load_theme(file) for file in files]


def _read(opened: "Store", reference: str | None) -> "tuple[RunInfo, list[Repetition]]":
    from rigctl.analysis.views.over_time import sampled

    info = opened.run(reference)
    return info, list(opened.repetitions(info.run, series=sampled(info.plan)))


def _page(
    first: "tuple[RunInfo, list[Repetition]]",
    second: "tuple[RunInfo, list[Repetition]] | None",
    themes: "list[Theme]",
    output: Path | None,
) -> None:
    from rigctl.cli.output import page_of
    from rigctl.report.document import document
    from rigctl.report.printers.html import write_page

    if second is not None:
        from rigctl.analysis.nights.comparison import compared
        from rigctl.analysis.run_view import RunView
        from rigctl.report.comparison.page import comparison_document

        made = comparison_document(compared(RunView(*second), RunView(*first)))
    else:
        made = document(*first)
    path = page_of(first[0], output)
    if themes:
        from rigctl.report.product.page import brand, themed

        write_page(themed(made, themes[0]), path, brand(themes[0]))
    else:
        write_page(made, path)
    print(path.resolve())


def _publish(
    first: "tuple[RunInfo, list[Repetition]]",
    second: "tuple[RunInfo, list[Repetition]] | None",
    themes: "list[Theme]",
    folder: Path,
) -> None:
    from rigctl.report.product.claim import NoClaim
    from rigctl.report.product.compare import side_by_side
    from rigctl.report.product.content import product
    from rigctl.report.product.page import files_of, write_files
    from rigctl.report.product.theme import default_theme

    own = themes[0] if themes else default_theme(first[0])
    if second is not None:
        named = themes[1] if len(themes) > 1 else default_theme(second[0], unlike=own)
        made = side_by_side((first[0], second[0]), (first[1], second[1]), (own, named))
    else:
        made = product(*first, own)
    files = files_of(made)
    write_files(files, folder)
    if isinstance(made.claim, NoClaim):
        typer.echo(str(made.claim), err=True)
    for name in files:
        print((folder / name).resolve())
