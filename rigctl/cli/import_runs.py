"""`rigctl import`: runs of files into the store."""

from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.options import StoreAddress


def import_runs(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files of `rigctl export --format rigctl`.")],
    store: StoreAddress = None,
) -> None:
    """Store the runs of FILE…: none where a file is damaged. A run that is there already stays as it is."""
    from rigctl.store import open_store

    with open_store(store) as opened:
        for taken in opened.transfer.take(files):
            if taken.new:
                print(f"{taken.run}: imported")
            elif taken.added:
                print(f"{taken.run}: was there already; added {', '.join(taken.added)}")
            else:
                print(f"{taken.run}: was there already")
