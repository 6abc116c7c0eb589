"""A controller that writes: it begins runs, adds to them, tags and accepts them. For processes that do so at once."""

from multiprocessing.synchronize import Barrier

import builders

from rigctl.records import Acceptance, Night, RunStatus
from rigctl.store import open_store

CELLS = 3


def write(address: str, name: str, runs: int, ready: Barrier) -> None:
    cells = [builders.cell(number) for number in range(1, CELLS + 1)]
    ready.wait()
    for number in range(runs):
        with open_store(address) as store:
            run = store.begin(builders.plan(cells, title=name), {}, {"pi1": {"by": name}}, 1000.0 + number)
            for cell in cells:
                store.add(run, builders.repetition(cell))
            store.history.tag(run, {"by": name, "number": str(number)})
            store.history.accept(Acceptance(run, 1.0, name, "why not"))
            # All processes write the same night; the last one counts.
            store.history.put_night(Night("s", "r", float(number), None, None, None, run, name))
            store.finish(run, RunStatus.COMPLETE, 2000.0)
