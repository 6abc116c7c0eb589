"""`rigctl show` prints one run; `report` writes its page, or parts of a product's page; `publish` writes the site."""

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field
from rich.console import Console

from rigctl.base.errors import InputError
from rigctl.cli.errors import end_by
from rigctl.cli.options import Json, RunId, StoreAddress, run_ids
from rigctl.cli.output import FOLDER, Versioned, at, folder_of_pages, page_of
from rigctl.cli.stored_runs import Measured, read_measured
from rigctl.report.document import document
from rigctl.report.printers.terminal import print_document
from rigctl.report.words.text import plural
from rigctl.store import open_store

if TYPE_CHECKING:
    from rigctl.report.product.theme import Theme


def show(
    run: RunId = None,
    store: StoreAddress = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all findings and notes.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, to paste into a page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: findings whole, tables with values.")] = False,
) -> None:
    """Print the answer, the table and the findings of RUN."""
    if markdown and json:
        raise InputError("show: --markdown and --json both print to standard output. Choose one")
    with open_store(store, create=False) as opened:
        shown = document(*read_measured(opened, run))
    if markdown:
        from rigctl.report.printers.markdown import markdown as as_markdown

        print(as_markdown(shown), end="")
    elif json:
        from rigctl.report.printers.json import as_json

        print(as_json(shown), end="")
    else:
        print_document(shown, Console(), everything=everything)


def report(
    run: RunId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write to this file (default: where `run` writes it, SCENARIO-RUN.html in RIGCTL_REPORTS, or "
            "rigctl-reports).",
        ),
    ] = None,
    theme: Annotated[
        Path | None,
        typer.Option(
            "--theme", metavar="FILE", help="Use name, logo, colours, fonts, columns, words and claim of this file."
        ),
    ] = None,
    fragment: Annotated[
        Path | None,
        typer.Option("--fragment", metavar="DIR", help="Write HTML for a shop's page and pictures to this folder."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--compare", metavar="RUN", help="Write a page that compares RUN with this run.", autocompletion=run_ids
        ),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write RUN as one self-contained HTML file, or as parts of a product's page."""
    paged = output is not None or other is not None or fragment is None
    folder = (folder_of_pages(output) or Path(FOLDER)) if paged else Path()
    own = _theme(theme) if theme is not None else None
    with open_store(store, create=False) as opened:
        first = read_measured(opened, run)
        second = read_measured(opened, other) if other is not None else None
    if fragment is not None:
        _write_fragment(first, own, fragment)
    if paged:
        _write_page(first, second, own, page_of(first[0], output, folder))


def _write_page(first: Measured, second: Measured | None, theme: "Theme | None", path: Path) -> None:
    from rigctl.report.printers.html import write_page

    if second is not None:
        from rigctl.analysis.nights.comparison import compared
        from rigctl.analysis.run_view import RunView
        from rigctl.report.comparison import comparison_document

        content = comparison_document(compared(RunView(*second), RunView(*first)))
    else:
        content = document(*first)
    path.parent.mkdir(parents=True, exist_ok=True)
    if theme is not None:
        from rigctl.report.product.page import brand

        write_page(content, path, brand(theme))
    else:
        write_page(content, path)
    print(path.resolve())


def _theme(file: Path) -> "Theme":
    from rigctl.report.product.theme import load_theme

    return load_theme(file)


def _write_fragment(measured: Measured, theme: "Theme | None", folder: Path) -> None:
    from rigctl.report.product.claim import NoClaim
    from rigctl.report.product.content import product
    from rigctl.report.product.page import files_of, write_files
    from rigctl.report.product.theme import Theme

    content = product(*measured, theme or Theme(measured[0].plan.rig_name))
    files = files_of(content)
    write_files(files, folder)
    if isinstance(content.claim, NoClaim):
        typer.echo(str(content.claim), err=True)
    for name in files:
        print((folder / name).resolve())


class PublishDocument(Versioned):
    """The site that `rigctl publish` wrote."""

    index: str = Field(description="The front page.")
    answer: str = at("done.answer", "The sentence on top of it.")
    runs: int = at("done.runs")
    scenarios: int = at("done.scenarios", "Each on each of its rigs.")
    news: int = at("done.news", "Entries of news that are known; the feed has the latest hundred.")
    written: list[str] = at("done.written", "Files that were written, relative to the folder.")
    removed: list[str] = at("done.removed", "Runs that are no longer in the store.")
    damaged: list[str] = at("done.damaged", "A message for each run that cannot be read.")
    took_s: float


def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the site: new, empty, or a site.")],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the site; later publishes keep it.")
    ] = None,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    """Write the store as a static site: news, trends, a calendar, every run.

    Only what changed is written again.
    """
    from rigctl.site.publish import publish as publish_site

    end_by([signal.SIGTERM], "rigctl publish was ended by a signal. The next call completes the site")
    began_s = time.monotonic()
    with open_store(store, create=False) as opened:
        done = publish_site(opened, folder, time.time(), title)
    took_s = time.monotonic() - began_s
    index = done.index.resolve()
    if as_json:
        print(PublishDocument.text_of(index=str(index), done=done, took_s=round(took_s, 3)))
        return
    print(done.answer)
    for message in done.damaged:
        print(f"left out: {message}")
    print(f"{plural(len(done.written), 'file')} written in {took_s:.1f} s, of {plural(done.runs, 'run')}")
    print(index)
