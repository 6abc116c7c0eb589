"""What a product's page holds, as records: claim, table, bars, conditions. Fragment, pictures and data print it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from rigctl.analysis.limits.ceiling import link_rate_bps
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.base.units import format_rate
from rigctl.model.unknowns import least
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Document, Table
from rigctl.report.document import document
from rigctl.report.product.claim import Claim, NoClaim, claim, decimals, floored
from rigctl.report.product.table import product_table
from rigctl.report.product.theme import Theme
from rigctl.report.words import method
from rigctl.report.words.text import ceiling_text, listed, plural, settings_text, told_apart

MOST_NAMED: Final = 4
"""Pairs by name."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One test: goodput of each pair, in Mbit/s, means over repetitions."""

    test: int
    settings: str
    mbps: tuple[float | None, ...]
    ceiling_mbps: float | None  # of a pair


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Product:
    """`claim`: `None` where the theme wants none."""

    theme: Theme
    info: RunInfo
    document: Document
    claim: Claim | NoClaim | None
    table: Table
    bars: tuple[Bar, ...]
    conditions: tuple[Term, ...]
    technique: str  # how it was measured
    source: str  # one line below everything that is published: date, virtual or not
    summary: str  # what was measured, where nothing is claimed
    rates_of: str = "each pair"  # the bars
    keys: tuple[str, ...] = ()  # of the bars of a test, where all tests have the same
    other: Theme | None = None  # of the product beside it
    verdict: tuple[str, ...] = ()  # on the two

    @property
    def virtual(self) -> bool:
        return self.info.plan.virtual is not None

    @property
    def name(self) -> str:
        return f"{self.theme.name} and {self.other.name}" if self.other else self.theme.name

    @property
    def title(self) -> str:
        return f"{self.name}: {self.theme.words.results[:1].lower()}{self.theme.words.results[1:]}"


def product(info: RunInfo, repetitions: Sequence[Repetition], theme: Theme) -> Product:
    """Raises `MistakesError` where the theme does not fit the run."""
    view = RunView(info, repetitions)
    made = document(info, repetitions)
    table = product_table(made, view, theme)
    shown = [row.test for row in table.rows if row.test is not None]
    drawn = tuple(_bars(view, shown))
    found = claim(view, theme.claim, shown) if theme.claim is not None else None
    return Product(
        theme=theme,
        info=info,
        document=made,
        claim=found,
        table=table,
        bars=drawn,
        conditions=tuple(_conditions(view, made, found)),
        technique=_technique(view),
        source=_source(info),
        summary=_summary(view, drawn, len(table.rows)),
        keys=_keys(view),
    )


def _bars(view: RunView, shown: Sequence[int]) -> Iterator[Bar]:
    if view.plan.in_messages:
        return
    cells = [cell for cell in view.cells if cell.cell.number in shown]
    pairs = told_apart(cell.cell for cell in cells)
    words = [settings_text(cell.cell, pairs).split(", ") for cell in cells]
    common = set(words[0]).intersection(*words) if len(words) > 1 else set()
    for cell, own in zip(cells, words, strict=True):
        rates = tuple(None if stream.goodput_mbps is None else stream.goodput_mbps.mean for stream in cell.streams)
        yield Bar(cell.cell.number, ", ".join(word for word in own if word not in common), rates, _ceiling(cell))


def _ceiling(cell: CellSummary) -> float | None:
    """Of a pair; `None` where they share a link, or have others."""
    found = {round(stream.ceiling_mbps, 1) for stream in cell.streams if stream.ceiling_mbps is not None}
    return found.pop() if len(found) == 1 and not cell.shared else None


def _keys(view: RunView) -> tuple[str, ...]:
    """The pairs, where all tests have the same."""
    streams = {cell.streams for cell in view.plan.cells}
    return tuple(map(str, streams.pop())) if len(streams) == 1 and not view.plan.in_messages else ()


def _summary(view: RunView, drawn: Sequence[Bar], tests: int) -> str:
    """`7 tests of 2 pairs at once, 911 to 941 Mbit/s on each pair`."""
    said = plural(tests, "test")
    rates = [rate for bar in drawn for rate in bar.mbps if rate is not None]
    pairs = {len(cell.pairs) for cell in view.plan.cells}
    several = len(pairs) == 1 and pairs != {1}
    if several:
        said += f" of {pairs.pop()} pairs at once"
    if rates:
        low, high = (f"{floored(rate):.{decimals(rate)}f}" for rate in (min(rates), max(rates)))
        said += f", {low} Mbit/s" if low == high else f", {low} to {high} Mbit/s"
    return said + (" on each pair" if rates and several else "")


def _source(info: RunInfo) -> str:
    day = f"{datetime.fromtimestamp(info.started_at, UTC):%-d %B %Y}"
    virtual = " on a virtual rig: no product was connected" if info.plan.virtual is not None else ""
    return f"Measured on {day}{virtual}."


def _technique(view: RunView) -> str:
    kinds = sorted({cell.kind.title for cell in view.plan.cells})
    return f"{listed(kinds)}, counted at the receiver, sums over the time in which all flows ran"


def _conditions(view: RunView, made: Document, found: Claim | NoClaim | None) -> Iterator[Term]:
    """What a reader needs to judge the figures, or to measure them again."""
    info = view.info
    if isinstance(found, Claim):
        yield Term("Claim", _meaning(found))
    if view.plan.virtual is not None:
        text = "Network namespaces of one computer take the place of hosts and switch. The figures are not a product's."
        yield Term("Virtual rig", text)
    yield Term("Tests", made_of(view))
    yield Term("Links", _links(view))
    if hosts := list(_hosts(info)):
        yield Term("Hosts", " ".join(hosts))
    own = method.sentences(replace(info, versions={}), view.every, [])[1:]
    tool = f"Measured with rigctl {info.versions.get('rigctl', '')}".rstrip() + "."
    yield Term("Method", " ".join([f"{_technique(view)}.", *own, tool]))
    yield Term("Rounding", "Goodput and efficiency are means over repetitions, rounded down.")
    yield Term("Run", f"{info.run}, {made.about[-1]}. Scenario {info.plan.scenario_name}, rig {info.plan.rig_name}.")


def _meaning(found: Claim) -> str:
    return (
        f"The slowest of {found.repetitions} repetitions of the slowest pair, rounded down. For its frames "
        f"{found.link} allows {ceiling_text(found.ceiling_mbps)} Mbit/s of application data."
    )


def made_of(view: RunView) -> str:
    """How many tests of how many pairs, of what length."""
    plan = view.plan
    pairs = sorted({len(cell.pairs) for cell in plan.cells})
    count = f"{pairs[0]}" if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
    together = " at once" if pairs[-1] > 1 else ""
    times = method.sentences(view.info, view.every, [])[0]
    said = f"{times} {count} pair{'s' if pairs[-1] > 1 else ''} of hosts{together}"
    few = len(pairs) == 1 and pairs[0] <= MOST_NAMED
    return f"{said}: {listed([str(stream) for stream in plan.cells[0].streams])}." if few else f"{said}."


def _links(view: RunView) -> str:
    info = view.info
    ends = {stream.ends for cell in view.plan.cells for stream in cell.streams}
    rates = {link_rate_bps(info, node) for pair in ends for node in pair}
    known = sorted(rate for rate in rates if rate is not None)
    said = f"{' and '.join(format_rate(rate) for rate in known)}" if known else "of unknown rate"
    mtu = least(stream.mtu for cell in view.cells for stream in cell.streams) if not view.plan.in_messages else None
    mss = sorted({s.mss_effective for cell in view.cells for s in cell.streams if s.mss_effective}) if mtu else []
    if mtu:
        said += f", MTU {mtu}"
    if mss:
        said += f"; segments of {listed([str(size) for size in mss])} bytes went over the wire"
    return f"{said}."


def _hosts(info: RunInfo) -> Iterator[str]:
    """Hosts that are alike together."""
    alike: dict[str, list[str]] = {}
    for node, facts in sorted(info.facts.items()):
        known = [facts.get(name) for name in ("cpu_model", "kernel", "driver")]
        alike.setdefault(", ".join(str(word) for word in known if word), []).append(node)
    for words, nodes in alike.items():
        yield f"{listed(nodes)}: {words or 'unknown'}."
