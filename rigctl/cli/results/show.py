"""Print the answer, the table and the findings of RUN.

Examples:
  rigctl show
  rigctl show latest~1 --all
  rigctl show --brief
"""

from typing import Annotated

import typer

from rigctl.base.errors import InputError
from rigctl.cli.options import Anonymous, RunId, StoreAddress
from rigctl.cli.output import write_output


def show_run(
    run: RunId = None,
    store: StoreAddress = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all findings and notes.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, to paste into a page.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print four lines to post; of a run with parts, a line for each.")
    ] = False,
    anonymous: Anonymous = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: all findings, unrounded values.")] = False,
) -> None:
    chosen = [name for name, given in (("--brief", brief), ("--markdown", markdown), ("--json", json)) if given]
    if len(chosen) > 1:
        raise InputError(f"show: {' and '.join(chosen)} each print another text. Choose one")
    # `show --help` needs none of what reads and prints a run.
    from rich.console import Console

    from rigctl.cli.stored_runs import read_view, readable_store
    from rigctl.report.document import document
    from rigctl.report.printers.terminal import print_brief, print_document
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        chosen_run = opened.run_id(run or "latest")
        with readable_store(opened, [chosen_run], anonymous=anonymous) as source:
            shown = document(read_view(source, chosen_run))
    if markdown:
        from rigctl.report.printers.markdown import markdown as as_markdown

        write_output(as_markdown(shown))
    elif json:
        from rigctl.report.printers.json import as_json

        write_output(as_json(shown))
    elif brief:
        print_brief(shown, Console())
    else:
        print_document(shown, Console(), everything=everything)
