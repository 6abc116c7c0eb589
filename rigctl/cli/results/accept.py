"""Make the levels of RUN the normal ones, with which `regress` compares later runs."""

import time
from typing import Annotated

import typer

from rigctl.base.errors import InputError
from rigctl.base.processes import account
from rigctl.base.texts import printable
from rigctl.cli.options import RunId, StoreAddress
from rigctl.records import CONFIRMS, Acceptance, RunInfo
from rigctl.store import Store, open_store


def accept_levels(
    because: Annotated[
        str,
        typer.Option("--because", metavar="TEXT", help="Why the levels are now normal; shown with later runs."),
    ],
    run: RunId = None,
    store: StoreAddress = None,
) -> None:
    # Tables and messages quote the reason, so it must be one line.
    reason = " ".join(because.split())
    if not reason:
        raise InputError('--because: expected a reason, as --because "new switch, firmware 1.2"')
    with open_store(store, create=False) as opened:
        info = night_of(opened, run)
        opened.history.accept(Acceptance(info.run, time.time(), account(), printable(reason)))
    print(f"{info.run}: accepted")


def night_of(opened: Store, run: str | None) -> RunInfo:
    """Return the named run. If the named run is the second measurement of a night, return the first.

    The store keeps the levels and changes of a night with the first run.
    """
    info = opened.run(run)
    return opened.run(info.tags[CONFIRMS]) if CONFIRMS in info.tags else info
