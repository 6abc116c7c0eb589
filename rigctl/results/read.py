"""Read the results of a stored run. A run that has ended is condensed once, when it is first read, and then kept."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from rigctl.base.errors import InputError, RigError
from rigctl.records import Repetition, RunInfo, RunStatus
from rigctl.results.condensed import RepetitionKey
from rigctl.results.kept import pack_run, stamp_of, unpack_run
from rigctl.results.run_results import RunResults, condensed_in_memory
from rigctl.store import Store
from rigctl.store.kept_results import read_kept, write_kept

_log = logging.getLogger(__name__)


def read_results(store: Store, info: RunInfo) -> RunResults:
    """Return the results of a stored run. Raise `InputError` if its records are inconsistent."""
    heads = store.heads(info.run)
    stamp = stamp_of(info, heads)
    if info.status is not RunStatus.RUNNING:
        kept = unpack_run(info, heads, read_kept(store, info.run, stamp))
        if kept is not None:
            return RunResults(info, heads, kept, partial(_read_whole, store, info.run))
    results = condensed_in_memory(info, store.repetitions(info.run))
    if info.status is not RunStatus.RUNNING and stamp == stamp_of(info, results.repetitions):
        _keep(store, info, results, stamp)
    return results


def _keep(store: Store, info: RunInfo, results: RunResults, stamp: str) -> None:
    try:
        write_kept(store, info.run, stamp, pack_run(info, results.repetitions, results.kept))
    except (InputError, RigError) as error:  # a full or read-only disk: the run is condensed again when it is read
        _log.info("the results of run %s are not kept: %s", info.run, error)


def _read_whole(store: Store, run: str, keys: Iterable[RepetitionKey], *, samples: bool) -> Sequence[Repetition]:
    wanted = list(keys)
    if not wanted:
        return []
    cells = sorted({cell for cell, _, _ in wanted})
    by_key = {one.key: one for one in store.repetitions(run, cells=cells, samples=samples)}
    return [by_key[key] for key in wanted]
