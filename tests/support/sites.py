"""A store of three weeks of nights with all that a site shows: a change, missed nights, tags, accepted levels."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from many_nights import DAY_S, FIRST_S, Change, confirm, measure, mesh_plan

from rigctl.records import Acceptance, Night, NightOutcome, Pair
from rigctl.site.folder import OWN
from rigctl.site.publish import Published, publish
from rigctl.store import Store

MISSED, FAILED, SLOWER, ACCEPTED = 4, 7, 12, 15
NIGHTS = 18
NOW = FIRST_S + 30 * DAY_S


class Site:
    """A store and the folder that it is published into."""

    def __init__(self, store: Store, path: Path) -> None:
        self.store, self.path = store, path

    def publish(self, **given: str) -> Published:
        return publish(self.store, self.path, NOW, **given)

    def files(self) -> dict[str, bytes]:
        """Return the content of all files of the site by path, without rigctl's own files."""
        found = (path for path in self.path.rglob("*") if path.is_file() and OWN not in path.parts)
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in found}

    def text(self, page: str) -> str:
        return (self.path / page).read_text()


def step(night: int, pair: Pair) -> float:
    return 0.9 if night >= SLOWER and pair.source == "c" else 1.0


def put_night(
    store: Store,
    number: int,
    scenario: str = "nightly",
    nodes: Sequence[str] = ("a", "b", "c"),
    change: Change = step,
    missed: Collection[int] = (MISSED,),
    failed: Collection[int] = (FAILED,),
) -> str | None:
    """Store a night with its record. Return the id of its run, or None if nothing was measured."""
    plan = mesh_plan(nodes, scenario_name=scenario)
    due = FIRST_S + number * DAY_S

    def keep(outcome: NightOutcome, run: str | None, reason: str | None) -> None:
        began = None if outcome is NightOutcome.MISSED else due
        store.history.put_night(Night(scenario, "lab", due, began, began and began + 60, outcome, run, reason))

    if number in missed:
        keep(NightOutcome.MISSED, None, "it did not begin: was the machine off?")
        return None
    if number in failed:
        keep(NightOutcome.FAILED, None, "d: connection <refused> & gone")
        return None
    run = measure(store, plan, number, change)
    if number == SLOWER:
        confirm(store, plan, number, run, change)
    keep(NightOutcome.NEWS if number == SLOWER + 1 else NightOutcome.QUIET, run, None)
    return run


def weeks(store: Store, nights: Iterable[int] = range(NIGHTS), scenarios: Iterable[str] = ("nightly",)) -> list[str]:
    """Store the nights of each scenario. Return the ids of their runs."""
    runs = []
    for number in nights:
        for scenario in scenarios:
            run = put_night(store, number, scenario)
            if run is not None:
                runs.append(run)
            if run is not None and number == 2:
                store.history.tag(run, {"firmware": "1.2.3"})
            if run is not None and number == ACCEPTED:
                store.history.accept(
                    Acceptance(run, FIRST_S + ACCEPTED * DAY_S + 9000, "anna@lab7", "a cable <of> 20 m")
                )
    return runs
