"""Times the publishing of a site with 365 nights × 20 tests × 2 scenarios and of one night more, and other commands.

`python tests/bench/bench_publish.py [--nights 365] [--run FILE]`. The nights are simulated (support/many_nights.py):
five nodes, one pair at a time, with a step, and missed and failed nights. `regress` reads all nights. Other commands
read a store of the seven tests of gigablox, and the run in FILE (`rigctl export --format rigctl`). Each command is a
separate process; chromium opens pages from the disk.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from bench import Spent, command, in_turn, spread, table, timed
from builders import gigablox, put
from sites import put_night

from rigctl.records import Pair
from rigctl.store import open_store

NODES: Final = ("n1", "n2", "n3", "n4", "n5")
SCENARIOS: Final = ("mesh", "mesh-jumbo")
MISSED, FAILED, SLOWER = (-348, -185, -184), (-305, -132), -65
"""Night numbers relative to the first night of many_nights."""
OF_LARGE: Final = ("show", "report -o page.html")
COMMANDS: Final = ("--version", "plan gigablox", "run gigablx", "runs", "show", "export --format csv", OF_LARGE[1])
LARGE: Final = Path(__file__).parents[1] / "golden" / "runs" / "matrix.rigctl"


def slower(night: int, pair: Pair) -> float:
    return 0.92 if night >= SLOWER and pair.source == "n3" else 1.0


def filled(path: Path, nights: range) -> None:
    with open_store(str(path)) as store:
        for night, name in product(nights, SCENARIOS):
            put_night(store, night - 365, name, NODES, slower, MISSED, FAILED)


def sites(folder: Path, nights: int) -> Iterator[tuple[str, Spent]]:
    store, words = folder / "store.db", ("publish", str(folder / "site"), "--json")
    filled(store, range(nights))
    yield "first publish", timed(*words, store=store)
    for added in range(nights, nights + 3):
        filled(store, range(added, added + 1))
        yield "one night more", timed(*words, store=store)
    yield "nothing new", timed(*words, store=store)
    yield "regress", timed("regress", store=store, codes=(0, 1))


def opening_s(page: Path, tries: int = 5) -> float:
    """Return the median time from navigation to the load event of a page, in seconds."""
    from playwright.sync_api import sync_playwright

    ended = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        taken = []
        for _ in range(tries):
            own = browser.new_page(viewport={"width": 1280, "height": 900})
            own.goto(f"file://{page}")
            own.wait_for_function(f"{ended} > 0", timeout=20_000)
            taken.append(own.evaluate(ended) / 1000)
            own.close()
        browser.close()
    return float(median(taken))


def time_commands(title: str, words: Sequence[str], store: Path) -> None:
    ways = {each: partial(timed, *each.split(), store=store, cwd=store.parent, codes=(0, 2)) for each in words}
    in_turn(1, ways)  # writes bytecode
    spent = {each: [(one.wall_s, one.cpu_s) for one in every] for each, every in in_turn(5, ways).items()}
    rows = ((each, *map(spread, zip(*every, strict=True))) for each, every in spent.items())
    table(title, ("command", "on the clock, s", "CPU, s"), rows)


def main(nights: int = 365, run: Path = LARGE) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seven = folder / "seven.db"
        with open_store(str(seven)) as store:
            put(store, *gigablox(60.0))
        time_commands("Seven tests", COMMANDS, seven)
        timed("import", str(run), store=folder / "large.db")
        time_commands(run.name, OF_LARGE, folder / "large.db")
        made: list[str] = []

        def written() -> Iterator[tuple[object, ...]]:
            for what, one in sites(folder, nights):
                made.extend(json.loads(one.output)["written"] if "regress" not in what else ())
                yield what, f"{one.wall_s:.2f}", f"{one.cpu_s:.2f}", f"{one.peak_mib:.0f}"

        table(f"{nights} nights of two scenarios", ("", "on the clock, s", "CPU, s", "peak, MiB"), written())
        of_run = next(page for page in made if page.startswith("runs/"))
        pages = [folder / "site" / page for page in ("index.html", "scenarios/mesh@lab.html", of_run)]
        opened = ((page.name, page.stat().st_size // 1024, f"{opening_s(page):.2f}") for page in pages)
        table("Pages from the disk", ("page", "KiB", "load event after, s"), opened)


if __name__ == "__main__":
    command(__doc__, main)
