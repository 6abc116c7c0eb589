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
        typer.Option("--because", metavar="TEXT", help="Say why: it is shown with every run."),
    ],
    run: RunId = None,
    store: StoreAddress = None,
) -> None:
    # One line, because tables and messages quote it.
    reason = " ".join(because.split())
    if not reason:
        raise InputError('--because: expected a reason, as --because "new switch, firmware 1.2"')
    with open_store(store, create=False) as opened:
        info = night_of(opened, run)
        opened.history.accept(Acceptance(info.run, time.time(), account(), printable(reason)))
    print(f"{info.run}: accepted")


def night_of(opened: Store, run: str | None) -> RunInfo:
    """Return the named run, or the earlier run that the named run confirms.

    If a night was measured twice, its levels and changes are stored with the first run.
    """
    info = opened.run(run)
    return opened.run(info.tags[CONFIRMS]) if CONFIRMS in info.tags else info
