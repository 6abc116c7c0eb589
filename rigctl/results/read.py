"""Read the results of a stored run."""

from rigctl.records import RunInfo
from rigctl.results.run_results import RunResults, condensed_in_memory
from rigctl.store import Store


def read_results(store: Store, info: RunInfo) -> RunResults:
    """Return the results of a stored run. Raise `InputError` if its records are inconsistent."""
    return condensed_in_memory(info, store.repetitions(info.run))
