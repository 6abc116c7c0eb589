"""Compares rigctl with other tools: goodput, processor time, round trips and datagrams, in turn on one machine.

`measure` writes one JSON line per run, so that a comparison can be measured in parts. `table` prints the comparison
from any number of such files. Tools that are not installed are left out and named; `--peers FOLDER` has more tools.

    python tests/bench/bench_peers.py measure streams --rounds 5 --out raw.jsonl
    python tests/bench/bench_peers.py table raw.jsonl
"""

import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import bench
import typer
from peers import DEFAULTS, TOOLS, laid_out, measured

from rigctl.remote.build import build_binaries, host_machine

FAILURES = (AssertionError, ValueError, KeyError, IndexError, TimeoutError, subprocess.TimeoutExpired)
Record = dict[str, Any]
Where = tuple[Any, ...]
Medians = dict[str, list[float | None]]
"""The median of each figure by tool; None if all runs failed."""


class Figure(NamedTuple):
    head: str
    of: Callable[[Record], float]
    best: Callable[[Iterable[float]], float]
    digits: int


def per_gb(side: str) -> Callable[[Record], float]:
    return lambda r: float(r[f"{side}_cpu_s"] / (r["bytes"] / 1e9))


def per_cpu(r: Record) -> float:
    return float(r["packets"] / (r["sender_cpu_s"] + r["receiver_cpu_s"]) / 1e3)


FIGURES: Final = {
    "streams": (
        Figure("Gbit/s", lambda r: r["gbps"], max, 1),
        *(Figure(f"{side}, s/GB", per_gb(side), min, 3) for side in ("sender", "receiver", "machine")),
    ),
    "messages": (Figure("p50, µs", lambda r: r["p50_us"], min, 1), Figure("p99, µs", lambda r: r["p99_us"], min, 1)),
    "datagrams": (
        Figure("arrived, 1000/s", lambda r: r["packets"] / r["seconds"] / 1e3, max, 0),
        Figure("per CPU second, 1000", per_cpu, max, 0),
    ),
}
UNITS: Final = {"streams": "flows", "messages": "message, bytes", "datagrams": "datagram, bytes"}


def measure(
    placement: Annotated[list[str], typer.Option(default_factory=lambda: ["scheduler"])],
    peers: Annotated[list[Path], typer.Option(default_factory=list)],
    kind: Annotated[Literal["streams", "messages", "datagrams"], typer.Argument()] = "streams",
    offloads: Literal["on", "off"] = "on",
    rounds: int = 5,
    out: Path = Path(os.devnull),
) -> None:
    """Measure, add the raw figures to `out`, and print their tables."""
    own = str(build_binaries([host_machine()])[0].path)
    path = os.pathsep.join([*(str(folder.resolve()) for folder in peers), os.environ["PATH"]])
    tools = [(tool, own if tool.own else shutil.which(tool.program, path=path)) for tool in TOOLS[kind]]
    for name in dict.fromkeys(tool.program for tool, found in tools if found is None):
        print(f"left out: {name} is not installed", file=sys.stderr)
    records: list[Record] = []
    for place in placement:
        pinned = {"scheduler": False, "taskset": True}[place]
        with laid_out(offloads=offloads == "on") as ends:
            for step, number in itertools.product(range(rounds), DEFAULTS[kind]):
                for tool, found in tools[step % len(tools) :] + tools[: step % len(tools)]:
                    if found is None or number > tool.most:
                        continue
                    known: Record = {"kind": kind, "offloads": offloads == "on", "placement": place}
                    known |= {"number": number, "tool": tool.name, "own": tool.own, "work": tool.work, "round": step}
                    try:
                        records.append(known | measured(tool, found, ends, number, pinned=pinned))
                    except FAILURES as error:
                        records.append(known | {"failed": f"{type(error).__name__}: {error}"[:200]})
                        print("failed:", records[-1], file=sys.stderr)
                    with out.open("a") as raw:
                        raw.write(json.dumps(records[-1]) + "\n")
    tables(kind, records)


def table(raw: list[Path]) -> None:
    """Print the tables of raw figures."""
    records = [json.loads(line) for file in raw for line in file.read_text().splitlines()]
    for kind in dict.fromkeys(record["kind"] for record in records):
        tables(kind, [record for record in records if record["kind"] == kind])


def tables(kind: str, records: Sequence[Record]) -> None:
    """Print ratios between tools that do the same work, then all tools by placement and number of flows or size."""
    cells: dict[Where, list[Record]] = {}
    for record in records:
        place = ("on" if record["offloads"] else "off", record["placement"], record["number"])
        cells.setdefault(place, []).append(record)
    medians = {where: medians_of(kind, each) for where, each in cells.items()}
    for work in dict.fromkeys(record["work"] for record in records if record["own"]):
        same = [record for record in records if record["work"] == work]
        own, peers = ({r["tool"]: None for r in same if r["own"] == mine} for mine in (True, False))
        if peers:
            heads = [f"{tool}: {figure.head.partition(',')[0]}" for tool in own for figure in FIGURES[kind]]
            rows = ((*where, *ratios(kind, each, list(own), set(peers))) for where, each in medians.items())
            known = [row for row in rows if set(row[3:]) != {"–"}]
            bench.table(f"{kind}, {work}: rigctl ÷ best peer", ("offloads", "placement", UNITS[kind], *heads), known)
    for (offloads, placement, number), each in cells.items():
        rounds = len({record["round"] for record in each})
        title = f"**offloads {offloads}, {placement}, {UNITS[kind]} {number}**, rounds: {rounds}"
        found = medians[offloads, placement, number]
        digits = [figure.digits for figure in FIGURES[kind]]
        shown = ((tool, *map(shortened, values, digits)) for tool, values in found.items())
        bench.table(title, ("", *(figure.head for figure in FIGURES[kind])), shown)


def medians_of(kind: str, records: Sequence[Record]) -> Medians:
    found: Medians = {}
    for tool in dict.fromkeys(record["tool"] for record in records):
        runs = [record for record in records if record["tool"] == tool and "failed" not in record]
        values = [[figure.of(run) for run in runs] for figure in FIGURES[kind]]
        found[tool] = [statistics.median(known) if known else None for known in values]
    return found


def ratios(kind: str, each: Medians, own: Sequence[str], peers: set[str]) -> Iterator[str]:
    for tool in own:
        for at, figure in enumerate(FIGURES[kind]):
            theirs = [value for peer in peers & each.keys() if (value := each[peer][at]) is not None]
            value = each[tool][at] if tool in each else None
            yield shortened(None if value is None or not theirs else value / figure.best(theirs), 2)


def shortened(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("namespaces and control groups need root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that nothing is left of it either
    sys.argv[1:] = sys.argv[1:] or ["measure"]
    bench.command(__doc__, measure, table)
