"""What the runs of all tools come to: medians, and ratios against the best peer."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    head: str
    of: Callable[[Record], float | None]
    more_is_better: bool
    digits: int


def per_gb(side: str) -> Callable[[Record], float | None]:
    return lambda r: float(r[f"{side}_cpu_s"]) / (r["bytes"] / 1e9)


def _per_cpu(r: Record) -> float:
    return float(r["packets"]) / (r["sender_cpu_s"] + r["receiver_cpu_s"]) / 1e3


FIGURES = {
    "streams": (
        Figure("Gbit/s", lambda r: r["gbps"], True, 1),
        Figure("sender, s/GB", per_gb("sender"), False, 3),
        Figure("receiver, s/GB", per_gb("receiver"), False, 3),
        Figure("machine, s/GB", per_gb("machine"), False, 3),
    ),
    "messages": (
        Figure("p50, µs", lambda r: r.get("p50_us"), False, 1),
        Figure("p99, µs", lambda r: r.get("p99_us"), False, 1),
        Figure("mean, µs", lambda r: r["mean_us"], False, 1),
    ),
    "datagrams": (
        Figure("arrived, 1000/s", lambda r: r["packets"] / r["seconds"] / 1e3, True, 0),
        Figure("per CPU second, 1000", _per_cpu, True, 0),
    ),
}
UNITS = {"streams": "flows {}", "messages": "messages of {} bytes", "datagrams": "datagrams of {} bytes"}


def tables(records: Iterable[Record]) -> list[str]:
    """Markdown: a table for each place and number of flows or size."""
    cells: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        keys = ("kind", "place", "mtu", "offloads", "pairs", "number")
        cells[tuple(record[key] for key in keys)].append(record)
    lines: list[str] = []
    for (kind, place, mtu, offloads, pairs, number), cell in cells.items():
        what = UNITS[kind].format(number)
        title = f"{place}, MTU {mtu}, offloads {'on' if offloads else 'off'}, pairs {pairs}, {what}"
        lines += ["", f"**{title}**, rounds: {len({record['round'] for record in cell})}", "", *_table(kind, cell)]
    return lines


def _table(kind: str, cell: Sequence[Record]) -> list[str]:
    figures = FIGURES[kind]
    medians: dict[str, list[float | None]] = {}
    peers: set[str] = set()
    tuned: set[str] = set()
    for tool in dict.fromkeys(record["tool"] for record in cell):
        runs = [record for record in cell if record["tool"] == tool and "failed" not in record]
        medians[tool] = [_median(map(figure.of, runs)) for figure in figures]
        if not any(record["own"] for record in cell if record["tool"] == tool):
            peers.add(tool)
            if any(record["tuned"] for record in cell if record["tool"] == tool):
                tuned.add(tool)
    lines = [f"| | {' | '.join(figure.head for figure in figures)} |", "|:--|" + "--:|" * len(figures)]
    for tool, values in medians.items():
        texts = [_number(value, figure.digits) for value, figure in zip(values, figures, strict=True)]
        lines.append(f"| {tool} | {' | '.join(texts)} |")
    for tool, values in medians.items():
        if tool not in peers:
            for group, among in (("", peers - tuned), (", asked as such", tuned)):
                texts = []
                for i, (value, figure) in enumerate(zip(values, figures, strict=True)):
                    others = [m for name in among if (m := medians[name][i]) is not None]
                    best = None if not others else max(others) if figure.more_is_better else min(others)
                    texts.append("–" if best is None or value is None else f"**{value / best:.2f}**")
                if among:
                    lines.append(f"| {tool} ÷ best peer{group} | {' | '.join(texts)} |")
    return lines


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
