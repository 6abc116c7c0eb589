"""All runs of a store, as far as they can be read."""

import time

from rigctl.base.errors import InputError
from rigctl.cli.runs_table import Listed
from rigctl.records import RunInfo, RunStatus
from rigctl.runner.resume import fate
from rigctl.store import Store


def stored_runs(opened: Store) -> tuple[list[Listed], list[str]]:
    """The runs that can be read, the earliest first, and what is wrong with the others."""
    infos, damaged = _readable(opened)
    measured, controllers, now = opened.measured(), opened.controllers(), time.time()
    found = []
    for info in infos:
        controller = controllers.get(info.run) if info.status is RunStatus.RUNNING else None
        found.append(Listed(info, measured.get(info.run, {}), fate(controller), now))
    return found, damaged


def _readable(opened: Store) -> tuple[list[RunInfo], list[str]]:
    try:
        return opened.runs(), []
    except InputError:
        pass  # find out which of them
    infos, damaged = [], []
    for run in opened.run_ids():
        try:
            infos.append(opened.run(run))
        except InputError as error:
            damaged.append(str(error))
    return infos, damaged
