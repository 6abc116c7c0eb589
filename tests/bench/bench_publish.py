"""How long a site takes: 365 nights × 20 tests × 2 scenarios, then one more, then nothing new; when a page is open.

`python tests/bench/bench_publish.py [--nights 365]`. The nights are simulated (support/many_nights.py): five nodes,
every pair by itself, with a step, missed and failed nights. Chromium opens pages from the disk with an empty cache.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from many_nights import DAY_S, FIRST_S, measure, mesh_plan

from rigctl.records import Night, NightOutcome, Pair, RunPlan
from rigctl.store import Store, open_store

ROOT: Final = Path(__file__).parents[2]
NODES: Final = ("n1", "n2", "n3", "n4", "n5")
SCENARIOS: Final = ("mesh", "mesh-jumbo")
MISSED, FAILED, SLOWER = frozenset({17, 180, 181}), frozenset({60, 233}), 300


def slower(night: int, pair: Pair) -> float:
    return 0.92 if night >= SLOWER and pair.source == "n3" else 1.0


def one_night(store: Store, plan: RunPlan, night: int) -> None:
    due = FIRST_S + (night - 365) * DAY_S
    if night in MISSED | FAILED:
        outcome = NightOutcome.MISSED if night in MISSED else NightOutcome.FAILED
        reason = "it did not begin" if night in MISSED else "n4: connection refused"
        store.history.put_night(Night(plan.scenario_name, plan.rig_name, due, None, None, outcome, None, reason))
        return
    run = measure(store, plan, night - 365, lambda _, pair: slower(night, pair))
    ended = Night(plan.scenario_name, plan.rig_name, due, due, due + 60, NightOutcome.QUIET, run, None)
    store.history.put_night(ended)


def filled(path: Path, nights: range) -> None:
    with open_store(str(path)) as store:
        for night in nights:
            for name in SCENARIOS:
                one_night(store, replace(mesh_plan(NODES), scenario_name=name), night)


def published(store: Path, site: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "rigctl", "publish", str(site), "--store", str(store), "--json"]
    began_s, used_s = time.monotonic(), _used_s()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=environment)
    said: dict[str, Any] = json.loads(done.stdout)
    return said | {"wall_s": time.monotonic() - began_s, "cpu_s": _used_s() - used_s}


def _used_s() -> float:
    """Of processors, by all that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _times(published: dict[str, Any]) -> str:
    return f"{published['wall_s']:6.2f} s, CPU {published['cpu_s']:6.2f} s"


def opening_s(page: Path, tries: int = 5) -> float:
    """From the navigation to the load event, the median of several."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        taken = []
        for _ in range(tries):
            own = browser.new_page(viewport={"width": 1280, "height": 900})
            own.goto(f"file://{page}")
            own.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0", timeout=20_000)
            taken.append(own.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
            own.close()
        browser.close()
    return float(median(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--store", type=Path, help="filled by an earlier call with --fill")
    parser.add_argument("--fill", action="store_true", help="make the store and stop")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        store = folder / "store.db"
        if given.fill:
            filled(given.store, range(given.nights))
            return
        if given.store:
            store.write_bytes(given.store.read_bytes())
        else:
            filled(store, range(given.nights))
        site = folder / "site"
        first = published(store, site)
        print(f"first    {_times(first)}  {len(first['written'])} files, {first['runs']} runs", flush=True)
        for added in range(3):
            filled(store, range(given.nights + added, given.nights + added + 1))
            new = published(store, site)
            print(f"night    {_times(new)}  {len(new['written'])} files", flush=True)
        same = published(store, site)
        print(f"nothing  {_times(same)}  {len(same['written'])} files", flush=True)
        sizes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"site     {sizes / 2**20:6.1f} MiB")
        run = next(page for page in first["written"] if page.startswith("runs/"))
        for page in ("index.html", "scenarios/mesh@lab.html", run):
            size = (site / page).stat().st_size / 2**10
            print(f"opens    {opening_s(site / page):6.2f} s  {page}, {size:.0f} KiB", flush=True)


if __name__ == "__main__":
    main()
