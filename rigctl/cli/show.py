"""`rigctl show`: one run, as `run` prints it at its end."""

from typing import Annotated

import typer

from rigctl.cli.options import RunId, StoreAddress


def show(
    run: RunId = None,
    store: StoreAddress = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all findings and notes.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, to paste into a page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: findings whole, tables with values.")] = False,
) -> None:
    """Print the answer, the table and the findings of RUN."""
    from rigctl.analysis.views.over_time import sampled
    from rigctl.report.document import document
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        info = opened.run(run)
        repetitions = opened.repetitions(info.run, series=sampled(info.plan))
    made = document(info, repetitions)
    if markdown:
        from rigctl.report.printers.markdown import markdown as as_markdown

        print(as_markdown(made), end="")
    elif json:
        from rigctl.report.printers.json import as_json

        print(as_json(made), end="")
    else:
        from rich.console import Console

        from rigctl.report.printers.terminal import print_document

        print_document(made, Console(), everything=everything)
