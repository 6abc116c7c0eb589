"""`rigctl show`: the table of one run, as `run` prints it at its end."""

from typing import Annotated

import typer

from rigctl.cli.options import StoreAddress


def show(
    run: Annotated[str | None, typer.Argument(help="Its id, or how that begins (default: the latest).")] = None,
    store: StoreAddress = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown, to paste into a page.")] = False,
) -> None:
    """Print the table of RUN and what it says, in words."""
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        info = opened.run(run)
        repetitions = opened.repetitions(info.run, series=False)
    if markdown:
        from rigctl.analysis.frames import load
        from rigctl.analysis.summary import summaries
        from rigctl.report.printers.markdown import markdown as as_markdown
        from rigctl.report.sections.streams.comparison import comparison

        print(as_markdown(comparison(summaries(load(info, repetitions)))), end="")
        return
    from rich.console import Console

    from rigctl.report.printers.terminal import print_run

    print_run(info, repetitions, Console())
