"""`rigctl show`: one run, as `rigctl run` prints it at its end."""

from typing import Annotated

import typer
from rich.console import Console

from rigctl.analysis.views.over_time import sampled
from rigctl.cli.options import RunId, StoreAddress
from rigctl.report.document import document
from rigctl.report.printers.json import as_json
from rigctl.report.printers.markdown import markdown as as_markdown
from rigctl.report.printers.terminal import print_document
from rigctl.store import open_store


def show(
    run: RunId = None,
    store: StoreAddress = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all findings and notes.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, to paste into a page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: findings whole, tables with values.")] = False,
) -> None:
    """Print the answer, the table and the findings of RUN."""
    with open_store(store, create=False) as opened:
        info = opened.run(run)
        repetitions = opened.repetitions(info.run, series=sampled(info.plan))
    made = document(info, repetitions)
    if markdown:
        print(as_markdown(made), end="")
    elif json:
        print(as_json(made), end="")
    else:
        print_document(made, Console(), everything=everything)
