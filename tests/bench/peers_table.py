"""What the runs of all tools come to: medians, and ratios against the best peer, in Markdown."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
Medians = dict[str, list[float | None]]
"""The median of each figure by tool."""
Where = tuple[Any, ...]


class Figure(NamedTuple):
    head: str
    of: Callable[[Record], float]
    best: Callable[[Iterable[float]], float]
    digits: int


def per_gb(side: str) -> Callable[[Record], float]:
    return lambda r: float(r[f"{side}_cpu_s"] / (r["bytes"] / 1e9))


def _per_cpu(r: Record) -> float:
    return float(r["packets"] / (r["sender_cpu_s"] + r["receiver_cpu_s"]) / 1e3)


FIGURES: Final = {
    "streams": (
        Figure("Gbit/s", lambda r: r["gbps"], max, 1),
        *(Figure(f"{side}, s/GB", per_gb(side), min, 3) for side in ("sender", "receiver", "machine")),
    ),
    "messages": (Figure("p50, µs", lambda r: r["p50_us"], min, 1), Figure("p99, µs", lambda r: r["p99_us"], min, 1)),
    "datagrams": (
        Figure("arrived, 1000/s", lambda r: r["packets"] / r["seconds"] / 1e3, max, 0),
        Figure("per CPU second, 1000", _per_cpu, max, 0),
    ),
}
UNITS: Final = {"streams": "flows", "messages": "message, bytes", "datagrams": "datagram, bytes"}


def tables(records: Sequence[Record]) -> list[str]:
    """Return the ratios among tools of the same work, then all tools of each place and number of flows, or size."""
    lines: list[str] = []
    for kind in dict.fromkeys(record["kind"] for record in records):
        those = [record for record in records if record["kind"] == kind]
        cells: dict[Where, list[Record]] = {}
        for record in those:
            cells.setdefault(_where(record), []).append(record)
        medians = {where: _medians(kind, each) for where, each in cells.items()}
        for work in dict.fromkeys(record["work"] for record in those if record["own"]):
            same = [record for record in those if record["work"] == work]
            own, peers = ({r["tool"]: None for r in same if r["own"] == mine} for mine in (True, False))
            if peers:
                lines += ["", f"{kind}, {work}: rigctl ÷ best peer", "", *_ratios(kind, medians, list(own), set(peers))]
        for (offloads, placement, number), each in cells.items():
            rounds = len({record["round"] for record in each})
            where = f"offloads {offloads}, {placement}, {UNITS[kind]} {number}"
            lines += ["", f"**{where}**, rounds: {rounds}", "", *_all_tools(kind, medians[_where(each[0])])]
    return lines


def _where(record: Record) -> Where:
    return "on" if record["offloads"] else "off", record["placement"], record["number"]


def _medians(kind: str, records: Sequence[Record]) -> Medians:
    found: Medians = {}
    for tool in dict.fromkeys(record["tool"] for record in records):
        runs = [record for record in records if record["tool"] == tool and "failed" not in record]
        values = [[figure.of(run) for run in runs] for figure in FIGURES[kind]]
        found[tool] = [statistics.median(known) if known else None for known in values]
    return found


def _ratios(kind: str, medians: dict[Where, Medians], own: Sequence[str], peers: set[str]) -> list[str]:
    figures = FIGURES[kind]
    heads = ["offloads", "placement", UNITS[kind]]
    heads += [f"{tool}: {figure.head.partition(',')[0]}" for tool in own for figure in figures]
    lines = [f"| {' | '.join(heads)} |", "|:--" + "|--:" * (len(heads) - 1) + "|"]
    for where, each in medians.items():
        ratios = []
        for tool in own:
            for at, figure in enumerate(figures):
                theirs = [value for peer in peers & each.keys() if (value := each[peer][at]) is not None]
                value = each[tool][at] if tool in each else None
                ratios.append(None if value is None or not theirs else value / figure.best(theirs))
        if any(ratio is not None for ratio in ratios):
            lines.append(f"| {' | '.join([*map(str, where), *(_number(ratio, 2) for ratio in ratios)])} |")
    return lines


def _all_tools(kind: str, medians: Medians) -> list[str]:
    figures = FIGURES[kind]
    lines = [f"| | {' | '.join(figure.head for figure in figures)} |", "|:--|" + "--:|" * len(figures)]
    for tool, values in medians.items():
        texts = [_number(value, figure.digits) for value, figure in zip(values, figures, strict=True)]
        lines.append(f"| {tool} | {' | '.join(texts)} |")
    return lines


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
