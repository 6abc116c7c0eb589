"""`rigctl report`: one run as a self-contained HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.options import StoreAddress
from rigctl.texts import file_name


def report(
    run: Annotated[str | None, typer.Argument(help="Its id, or how that begins (default: the latest).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="Default: SCENARIO-RUN.html here.")
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write RUN as one self-contained HTML file."""
    from rigctl.analysis.drawn import drawn_numbers
    from rigctl.report.document import document
    from rigctl.report.printers.html import write_page
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        info = opened.run(run)
        repetitions = opened.repetitions(info.run, series=drawn_numbers(info.plan))
    path = output or Path(f"{file_name(info.plan.scenario_name)}-{file_name(info.run)}.html")
    write_page(document(info, repetitions), path)
    print(path.resolve())
