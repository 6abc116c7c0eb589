"""`rigctl report`: one run as a self-contained HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.options import RunId, StoreAddress


def report(
    run: RunId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="Write to this file (default: SCENARIO-RUN.html here)."
        ),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write RUN as one self-contained HTML file."""
    from rigctl.analysis.drawn import sampled
    from rigctl.cli.output import check_page, page_of
    from rigctl.report.document import document
    from rigctl.report.printers.html import write_page
    from rigctl.store import open_store

    check_page(output)
    with open_store(store, create=False) as opened:
        info = opened.run(run)
        repetitions = opened.repetitions(info.run, series=sampled(info.plan))
    path = page_of(info, output)
    write_page(document(info, repetitions), path)
    print(path.resolve())
