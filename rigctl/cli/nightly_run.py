"""`rigctl nightly run`: one night, with the real clock, store and commands."""

import signal
import sys
import time
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING

from rigctl.base.errors import InputError, Interrupted, RigError
from rigctl.records import NightOutcome

if TYPE_CHECKING:
    from rigctl.nightly.night import Done
    from rigctl.nightly.settings import Settings


def do(name: str) -> int:
    """Return 0 for a quiet night, 1 for news or a missed expectation, 3 for anything that failed.

    3: the night failed, nobody could be told, or the site could not be published.
    """
    from rigctl.base.logs import about
    from rigctl.nightly.commands import Commands, pruned
    from rigctl.nightly.install import state
    from rigctl.nightly.night import Nightly, one_night, without_store
    from rigctl.nightly.settings import load, state_folder
    from rigctl.nightly.state import alone
    from rigctl.store import SilentStoreError, open_store

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    settings = load(name)
    scenario, rig = settings.stored_as
    remembered = state(name, time.time())
    logs = state_folder() / "logs" / name
    if remembered.damage is not None:
        print(f"rigctl: {remembered.damage}", file=sys.stderr)
    nightly = Nightly(scenario, rig, settings.at)
    with alone(remembered.file, name), about():
        pruned(logs)
        work = Commands(settings, logs / f"{datetime.now():%Y%m%d-%H%M%S}")
        try:
            with open_store(settings.store) as store:
                done = one_night(nightly, store.history, remembered, work, time.time)
        except (InputError, SilentStoreError) as error:
            done = without_store(nightly, error, remembered, work, time.time())
    return _tell(done, settings)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted("rigctl nightly was ended by a signal")


def _tell(done: "Done", settings: "Settings") -> int:
    from rigctl.nightly.schedule import date_of

    night = done.night
    ran = f" Run {night.run}." if night.run else ""
    if done.told is not None:
        print(done.told.markdown, end="")
    else:
        print(f"{night.scenario} on {night.rig}, {date_of(night.due_at)}: measured, nothing new.{ran}")
    if done.unpublished is not None:
        print(f"rigctl: the site was not published: {done.unpublished}", file=sys.stderr)
    if done.untold is not None:
        raise RigError(f"{done.untold}. The message is kept, and goes out with the next one")
    if done.told is not None and settings.notify is None:
        print("Nobody was notified: rigctl nightly install --notify", file=sys.stderr)
    if night.outcome is NightOutcome.QUIET:
        return 0 if done.unpublished is None else RigError.exit_code
    return 1 if night.outcome in {NightOutcome.NEWS, NightOutcome.UNEXPECTED} else RigError.exit_code
