"""A store of 1,000,000 pair rows (large_store.py): what the commands that read it take, on SQLite and on PostgreSQL.

`python tests/bench/bench_store_scale.py [--nights 400] [--cache FOLDER] [--tries 3] [--on sqlite|postgresql]`

The stores, the server's databases and the site of a first publish are kept in FOLDER (default: rigctl-bench in the
user's cache folder) and made where they are not there: 4.5 GB each. `--fill` makes the stores and stops, `--site` the
sites too: the pages of 1,600 runs take longer than all else here. Each command is a process of its own, from its start
to its end, bytecode written; medians of several, in turn. Peak memory is that of the largest of its processes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import large_store
import postgres
from platformdirs import user_cache_path

ROOT: Final = Path(__file__).parents[2]
_SETTINGS: Final = ("listen_addresses=", "dynamic_shared_memory_type=mmap", "log_min_messages=fatal")
"""Else a server as it is installed."""
GOALS_S: Final = {"show": 1.0, "regress": 5.0, "publish": 5.0}


@dataclass(frozen=True, slots=True)
class Spent:
    wall_s: float
    cpu_s: float
    memory_mib: float


@dataclass(slots=True)
class Place:
    """A store: its address, how a night is added to it, and the site that is made of it."""

    name: str
    address: str
    site: Path
    nights: int
    tries: int
    spent: dict[str, list[Spent]] = field(default_factory=dict)

    def add(self, nights: Sequence[int]) -> None:
        sources = large_store.sources()
        if self.name == "sqlite":
            large_store.fill_sqlite(Path(self.address), sources, nights)
        else:
            large_store.fill_postgresql(self.address, sources, nights)


def timed(arguments: Sequence[str], address: str) -> Spent:
    """Of one command, which must end well, or with the 1 of a regression."""
    bytecode = str(user_cache_path("rigctl-bench") / "bytecode")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RIGCTL_STORE": address, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rigctl", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"rigctl {' '.join(arguments)}: {said.decode()}")
    return Spent(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def commands(folder: Path, latest: dict[str, str], old: str) -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {f"show, latest {name}": ("show", run) for name, run in latest.items()}
    made["show, 399 nights old"] = ("show", old)
    made["runs"] = ("runs",)
    made |= {f"regress, {name}": ("regress", run) for name, run in latest.items()}
    page, table = str(folder / "page.html"), str(folder / "table.csv")
    made["report, matrix"] = ("report", latest["matrix"], "-o", page)
    made["export, csv, pairs of matrix"] = ("export", latest["matrix"], "--level", "pairs", "-o", table)
    made["runs prune, 90 d, not removed"] = ("runs", "prune", "--keep", "90d")
    return made


def latest_runs(address: str) -> tuple[dict[str, str], str]:
    """Of each scenario the latest run; and the first matrix."""
    from rigctl.store import open_store

    names = [plan.scenario_name for plan in large_store.plans()]
    with open_store(address, create=False) as store:
        ids = store.run_ids()
    return {name: max(run for run in ids if run.endswith(f"{number:04x}")) for number, name in enumerate(names)}, next(
        run for run in ids if run.endswith(f"{names.index('matrix'):04x}")
    )


def measure(place: Place, folder: Path, only: str) -> None:
    latest, old = latest_runs(place.address)
    timed(("show",), place.address)  # writes the bytecode
    timed(("regress",), place.address)
    wanted = {name: words for name, words in commands(folder, latest, old).items() if only in name}
    for _ in range(place.tries):
        for name, words in wanted.items():
            place.spent.setdefault(name, []).append(timed(words, place.address))
    if only in "publish" and place.site.exists():
        publishing(place)


def publishing(place: Place) -> None:
    """One night more of all scenarios, several times, then nothing new."""
    words = ("publish", str(place.site))
    timed(words, place.address)  # what an earlier bench has added, or another rigctl has made
    for number in range(place.tries):
        place.add([next_night(place)])
        place.spent.setdefault("publish, a night of 4 scenarios", []).append(timed(words, place.address))
        if number == 0:
            place.spent["publish, nothing new"] = [timed(words, place.address) for _ in range(place.tries)]


def next_night(place: Place) -> int:
    from rigctl.store import open_store

    with open_store(place.address, create=False) as store:
        return len(store.run_ids()) // len(large_store.plans())


def tell(place: Place) -> None:
    print(f"\n{place.name}\n| command | goal, s | on the clock, s | CPU, s | peak, MiB |\n|---|--:|--:|--:|--:|")
    for name, spent in place.spent.items():
        goal = GOALS_S.get(name.split(",")[0])
        memory = max(each.memory_mib for each in spent)
        print(
            f"| {name} | {goal or '–'} | {median(each.wall_s for each in spent):.2f} | "
            f"{median(each.cpu_s for each in spent):.2f} | {memory:.0f} |",
            flush=True,
        )


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server whose databases are in `folder`; the address of one of them."""
    programs = postgres.programs()
    if programs is None:
        sys.exit("takes PostgreSQL's server: Debian has it in the package postgresql")
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    server = postgres.Server(folder, programs, _SETTINGS)
    server.start()
    try:
        yield server.url("postgres")
    finally:
        server.stop()


@contextmanager
def places(given: argparse.Namespace) -> Iterator[list[Place]]:
    """The stores, filled."""
    folder: Path = given.cache
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    if given.on != "postgresql":
        file = folder / f"sqlite-{given.nights}.db"
        made.append(Place("sqlite", str(file), folder / f"site-sqlite-{given.nights}", given.nights, given.tries))
        filled(made[-1], file.with_suffix(".filled"), file)
    if given.on == "sqlite":
        yield made
        return
    with served(folder / f"postgresql-{given.nights}") as address:
        site = folder / f"site-postgresql-{given.nights}"
        made.append(Place("postgresql", address, site, given.nights, given.tries))
        filled(made[-1], folder / f"postgresql-{given.nights}.filled", None)
        yield made


def filled(place: Place, mark: Path, file: Path | None) -> None:
    if mark.exists():
        return
    if file is not None:
        file.unlink(missing_ok=True)
    began = time.monotonic()
    place.add(range(place.nights))
    if file is None:
        import psycopg

        with psycopg.connect(place.address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")  # as a server does by itself, minutes later
    mark.touch()
    print(f"{place.name}: {place.nights} nights stored in {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=large_store.NIGHTS)
    parser.add_argument("--cache", type=Path, default=user_cache_path("rigctl-bench"))
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--on", choices=("sqlite", "postgresql"))
    parser.add_argument("--only", default="", help="commands whose names hold this")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--site", action="store_true")
    given = parser.parse_args()
    with places(given) as made:
        for place in () if given.fill else made:
            if given.site or not (given.only or place.site.exists()):
                print(f"{place.name}, first publish: {timed(('publish', str(place.site)), place.address)}", flush=True)
            if not given.site:
                measure(place, given.cache, given.only)
                tell(place)


if __name__ == "__main__":
    main()
