"""What the runs of all tools come to: medians, and ratios against the best peer, in Markdown."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
Medians = dict[str, list[float | None]]


@dataclass(frozen=True)
class Figure:
    head: str
    of: Callable[[Record], float | None]
    more_is_better: bool
    digits: int

    def best(self, values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return None if not known else max(known) if self.more_is_better else min(known)


def per_gb(side: str) -> Callable[[Record], float | None]:
    return lambda r: float(r[f"{side}_cpu_s"] / (r["bytes"] / 1e9))


def _per_cpu(r: Record) -> float:
    return float(r["packets"] / (r["sender_cpu_s"] + r["receiver_cpu_s"]) / 1e3)


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
UNITS = {"streams": "flows", "messages": "message, bytes", "datagrams": "datagram, bytes"}
SETTINGS = ("place", "mtu", "offloads", "pairs", "number")


@dataclass(frozen=True)
class Cell:
    """One place and number of flows, or size: what each tool brought."""

    kind: str
    where: tuple[Any, ...]
    rounds: int
    medians: Medians
    own: frozenset[str]
    tuned: frozenset[str]

    @property
    def figures(self) -> tuple[Figure, ...]:
        return FIGURES[self.kind]

    def peers(self, *, tuned: bool) -> list[str]:
        return [tool for tool in self.medians if tool not in self.own and (tool in self.tuned) == tuned]

    def ratio(self, tool: str, figure: int, *, tuned: bool) -> float | None:
        """Of a tool to the best of the peers."""
        value = self.medians[tool][figure] if tool in self.medians else None
        best = self.figures[figure].best(self.medians[peer][figure] for peer in self.peers(tuned=tuned))
        return None if value is None or best is None else value / best


def cells(records: Iterable[Record]) -> list[Cell]:
    gathered: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        gathered[record["kind"], *(record[axis] for axis in SETTINGS)].append(record)
    return [_cell(kind, where, found) for (kind, *where), found in gathered.items()]


def _cell(kind: str, where: Sequence[Any], records: Sequence[Record]) -> Cell:
    medians: Medians = {}
    for tool in dict.fromkeys(record["tool"] for record in records):
        runs = [record for record in records if record["tool"] == tool and "failed" not in record]
        medians[tool] = [_median(map(figure.of, runs)) for figure in FIGURES[kind]]
    own = frozenset(record["tool"] for record in records if record["own"])
    tuned = frozenset(record["tool"] for record in records if record["tuned"])
    return Cell(kind, tuple(where), len({record["round"] for record in records}), medians, own, tuned)


def tables(records: Iterable[Record]) -> list[str]:
    """All tools of each cell; before them, of each kind, the ratios of all cells."""
    found = cells(records)
    lines: list[str] = []
    for kind in dict.fromkeys(cell.kind for cell in found):
        those = [cell for cell in found if cell.kind == kind]
        for tuned in (False, True):
            if not any(cell.peers(tuned=tuned) for cell in those):
                continue
            lines += ["", f"{kind}: rigctl ÷ best peer{', asked for what rigctl does' if tuned else ''}", ""]
            lines += _ratios(those, tuned=tuned)
        for cell in those:
            lines += ["", f"**{_where(cell)}**, rounds: {cell.rounds}", "", *_medians(cell)]
    return lines


def _where(cell: Cell) -> str:
    place, mtu, offloads, pairs, number = cell.where
    return f"{place}, MTU {mtu}, offloads {_flag(offloads)}, pairs {pairs}, {UNITS[cell.kind]} {number}"


def _ratios(those: Sequence[Cell], *, tuned: bool) -> list[str]:
    figures = those[0].figures
    own = list(dict.fromkeys(tool for cell in those for tool in cell.medians if tool in cell.own))
    heads = ["place", "MTU", "offloads", "pairs", UNITS[those[0].kind]]
    heads += [f"{tool}: {figure.head.partition(',')[0]}" for tool in own for figure in figures]
    lines = [f"| {' | '.join(heads)} |", "|:--" + "|--:" * (len(heads) - 1) + "|"]
    for cell in those:
        place, mtu, offloads, pairs, number = cell.where
        words = [place, str(mtu), _flag(offloads), str(pairs), str(number)]
        ratios = [cell.ratio(tool, i, tuned=tuned) for tool in own for i in range(len(figures))]
        if any(ratio is not None for ratio in ratios):
            lines.append(f"| {' | '.join(words + [_number(ratio, 2) for ratio in ratios])} |")
    return lines


def _medians(cell: Cell) -> list[str]:
    lines = [f"| | {' | '.join(figure.head for figure in cell.figures)} |", "|:--|" + "--:|" * len(cell.figures)]
    for tool, values in cell.medians.items():
        texts = [_number(value, figure.digits) for value, figure in zip(values, cell.figures, strict=True)]
        lines.append(f"| {tool} | {' | '.join(texts)} |")
    return lines


def _flag(value: bool) -> str:
    return "on" if value else "off"


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
