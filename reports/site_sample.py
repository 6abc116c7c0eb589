"""The sample of a site, reports/samples/site: three weeks of real nights on a virtual rig.

The nights are those of three_weeks.py, seconds apart; only their dates are simulated: a run is dated
by the night that it was measured for. `python reports/site_sample.py [--print]`: with it, from what was measured last.
"""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

from make_samples import pictured
from three_weeks import measure_nights

from rigctl.records import CONFIRMS, Acceptance, RunInfo
from rigctl.site.folder import OWN, FeedIdentity, open_folder
from rigctl.site.publish import publish
from rigctl.store import Store, open_store

ROOT: Final = Path(__file__).parents[1]
SITE: Final = ROOT / "reports" / "samples" / "site"
STORES: Final = Path(os.environ.get("RIGCTL_SAMPLES", ROOT / ".venv" / "samples"))
TITLE: Final = "The switch lab"
LATER_S: Final = 600.0
"""From a night to its second measurement."""


def dated(source: Store, target: Store) -> None:
    """Copy the runs of `source` to `target`, each at the time of its night."""
    nights = source.history.nights()
    due = {night.run: night.due_at for night in nights if night.run is not None}
    names: dict[str, str] = {}
    for info in source.runs():
        night = info.tags.get(CONFIRMS)
        if night is None:
            names[info.run] = _copied(source, target, info, due[info.run] + 1)
        elif night in names:
            names[info.run] = _copied(source, target, info, due[night] + LATER_S, {CONFIRMS: names[night]})
    for night_ in nights:
        target.history.put_night(replace(night_, run=names.get(night_.run or "")))


def _copied(source: Store, target: Store, info: RunInfo, at: float, tags: dict[str, str] | None = None) -> str:
    run = target.begin(info.plan, info.versions, info.facts, at, tags=tags)
    for repetition in source.repetitions(info.run):
        moved = at - info.started_at
        target.add(run, replace(repetition, started_at=repetition.started_at + moved))
    target.finish(run, info.status, at + ((info.ended_at or info.started_at) - info.started_at))
    return run


def accept_the_slower_link(store: Store) -> None:
    """As somebody would who knows of the cable: on the morning after three nights on the new level."""
    slower = [info for info in store.runs() if CONFIRMS not in info.tags][-3]
    because = "the link of pi3 was shaped to 90 % on purpose"
    store.history.accept(Acceptance(slower.run, slower.started_at + 6 * 3600, "anna@lab7", because))


def main() -> None:
    STORES.mkdir(parents=True, exist_ok=True)
    kept, store = STORES / "three-weeks.db", STORES / "site.db"
    if "--print" not in sys.argv:
        measure_nights(STORES)
    store.unlink(missing_ok=True)
    shutil.rmtree(SITE, ignore_errors=True)
    with open_store(str(kept), create=False) as source, open_store(str(store)) as target:
        dated(source, target)
        accept_the_slower_link(target)
        with open_folder(SITE) as folder:
            folder.set_mark(FeedIdentity(UUID("5f0c2c4e-3e0b-4d6c-8a55-6d1f0a7c2b11"), TITLE))
        publish(target, SITE, target.runs()[-1].started_at + 4 * 3600)
    shutil.rmtree(SITE / OWN)  # for a next publish only
    (scenario,) = (SITE / "scenarios").glob("*.html")
    pictured({"site-morning": SITE / "index.html", "site-scenario": scenario})
    print(SITE)


if __name__ == "__main__":
    main()
