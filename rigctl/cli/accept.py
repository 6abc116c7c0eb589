"""`rigctl accept`: the levels of a run become the normal ones."""

import time
from typing import Annotated

import typer

from rigctl.cli.options import RunId, StoreAddress


def accept(
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Say why: it is shown with every run.")],
    run: RunId = None,
    store: StoreAddress = None,
) -> None:
    """Make the levels of RUN the normal ones: `regress` compares later runs with them."""
    from rigctl.base.account import account
    from rigctl.base.errors import InputError
    from rigctl.base.texts import printable
    from rigctl.cli.regress import night_of
    from rigctl.records import Accepted
    from rigctl.store import open_store

    reason = " ".join(because.split())
    if not reason:
        raise InputError('--because: expected a reason, as --because "new switch, firmware 1.2"')
    with open_store(store, create=False) as opened:
        info = night_of(opened, run)
        opened.history.accept(Accepted(info.run, time.time(), account(), printable(reason)))
    print(f"{info.run}: accepted")
