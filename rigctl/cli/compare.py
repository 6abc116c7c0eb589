"""`rigctl compare`: two runs test by test, or the two variants of a run with --against."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.completion import run_ids
from rigctl.cli.options import Bound, StoreAddress

if TYPE_CHECKING:
    from rigctl.analysis.nights.comparison import Comparison
    from rigctl.analysis.run_view import RunView
    from rigctl.store import Store


class Format(StrEnum):
    TERMINAL = "terminal"
    HTML = "html"
    MD = "md"
    JSON = "json"


def compare(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="Id of a run, its beginning, latest, or latest~N: the Nth before it (default: latest~1). Alone, of a "
            "run with --against: its variants.",
            autocompletion=run_ids,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="The run that is compared with A (default: latest).",
            autocompletion=run_ids,
            show_default=False,
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Print or write this.")] = Format.TERMINAL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file, in the format of its ending."),
    ] = None,
    bound: Bound = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    store: StoreAddress = None,
) -> int:
    """Compare run B with run A test by test; exit with 1 where something got worse."""
    from rigctl.store import open_store

    form = Format.JSON if as_json else form
    if output is not None and form is Format.TERMINAL:
        form = _by_ending(output)
    with open_store(store, create=False) as opened:
        comparison = _comparison(opened, before, after, bound / 100)
    _put(comparison, form, output)
    return int(comparison.worse)


def _comparison(opened: "Store", before: str | None, after: str | None, bound: float) -> "Comparison":
    from rigctl.analysis.nights.comparison import compared, of_variants
    from rigctl.base.errors import InputError

    latest = opened.run(None)
    if after is None:
        first = latest if before is None else opened.run(before)
        if first.plan.against is not None:
            return of_variants(_view(opened, first.run), bound)
        after = "latest"
        before = before or "latest~1"
    views = [_view(opened, reference or "latest~1") for reference in (before, after)]
    if views[0].info.run == views[1].info.run:
        raise InputError(f"run {views[0].info.run} is A and B. Name two runs; `rigctl runs` lists them")
    return compared(views[0], views[1], bound)


def _view(opened: "Store", reference: str) -> "RunView":
    from rigctl.analysis.run_view import RunView

    info = opened.run(reference)
    return RunView(info, opened.repetitions(info.run, series=False))


def _by_ending(output: Path) -> Format:
    from rigctl.base.errors import InputError

    endings = {".html": Format.HTML, ".htm": Format.HTML, ".md": Format.MD, ".json": Format.JSON}
    form = endings.get(output.suffix.lower())
    if form is None:
        raise InputError(f"{output}: no format is known by this ending. Give --format html, md or json")
    return form


def _put(comparison: "Comparison", form: Format, output: Path | None) -> None:
    from rigctl.report.comparison.page import comparison_document

    made = comparison_document(comparison)
    if form is Format.TERMINAL:
        from rich.console import Console

        from rigctl.report.printers.terminal import print_document

        print_document(made, Console(), everything=True)
        return
    if form is Format.HTML:
        from rigctl.report.printers.html import page

        text = page(made)
    elif form is Format.MD:
        from rigctl.report.printers.markdown import markdown

        text = markdown(made)
    else:
        from rigctl.cli.compare_document import compare_json

        text = compare_json(comparison, made) + "\n"
    if output is None:
        print(text, end="")
        return
    from rigctl.report.printers.files import write_whole

    write_whole(output, text.encode("utf-8", "replace"))
    print(output.resolve())
