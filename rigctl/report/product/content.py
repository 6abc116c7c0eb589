"""What a product's page holds, as records: its claim, table, bars and conditions. Fragment, pictures and data print it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean

from rigctl.analysis.ceiling import link_rate_bps
from rigctl.analysis.drawn import sampled  # noqa: F401 — what `report` reads with a run
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.model.unknowns import least
from rigctl.records import Repetition, RunInfo
from rigctl.report import method
from rigctl.report.blocks import Document, Table
from rigctl.report.document import document
from rigctl.report.product.claim import Claim, NoClaim, claim, floored
from rigctl.report.product.table import product_table
from rigctl.report.product.theme import Theme
from rigctl.report.text import listed, settings_text, told_apart
from rigctl.units import format_rate


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
    technique: str  # how it was measured, in a sentence
    source: str  # one line below everything that is published: date, virtual or not

    @property
    def virtual(self) -> bool:
        return self.info.plan.virtual is not None

    @property
    def title(self) -> str:
        return f"{self.theme.name}: {self.theme.words.results[:1].lower()}{self.theme.words.results[1:]}"


def product(info: RunInfo, repetitions: Sequence[Repetition], theme: Theme) -> Product:
    """Raises `MistakesError` where the theme does not fit the run."""
    view = RunView(info, repetitions)
    made = document(info, repetitions)
    table = product_table(made, view, theme)
    shown = [row.test for row in table.rows if row.test is not None]
    found = claim(view, theme.claim, shown) if theme.claim is not None else None
    return Product(
        theme=theme,
        info=info,
        document=made,
        claim=found,
        table=table,
        bars=tuple(_bars(view, shown)),
        conditions=tuple(_conditions(view, made, found)),
        technique=_technique(view),
        source=_source(info),
    )


def _bars(view: RunView, shown: Sequence[int]) -> Iterator[Bar]:
    if view.plan.in_messages:
        return
    cells = [cell for cell in view.cells if cell.cell.number in shown]
    pairs = told_apart(cell.cell for cell in cells)
    for cell in cells:
        rates = tuple(None if stream.goodput_mbps is None else stream.goodput_mbps.mean for stream in cell.streams)
        yield Bar(cell.cell.number, settings_text(cell.cell, pairs), rates, _ceiling(cell))


def _ceiling(cell: CellSummary) -> float | None:
    """Of a pair; `None` where they share a link, or have others."""
    found = {round(stream.ceiling_mbps, 1) for stream in cell.streams if stream.ceiling_mbps is not None}
    return found.pop() if len(found) == 1 and not cell.shared else None


def _source(info: RunInfo) -> str:
    day = f"{datetime.fromtimestamp(info.started_at, UTC):%-d %B %Y}"
    where = "a virtual rig: no product was connected" if info.plan.virtual is not None else "hardware"
    return f"Measured on {day} on {where}." if info.plan.virtual is not None else f"Measured on {day}."


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
    own = method.sentences(info, view.every, [])
    yield Term("Method", " ".join([f"{_technique(view)}.", *own[1:]]))
    yield Term("Rounding", "Goodput and efficiency are means over repetitions, rounded down.")
    yield Term("Run", f"{info.run}, {made.about[-1]}. Scenario {info.plan.scenario_name}, rig {info.plan.rig_name}.")


def _meaning(found: Claim) -> str:
    return (
        f"The slowest of {found.repetitions} repetitions of the slowest pair, rounded down. For its frames "
        f"{found.link} allows {floored(found.ceiling_mbps, 1):.1f} Mbit/s of application data."
    )


def made_of(view: RunView) -> str:
    """How many tests of how many pairs, of what length."""
    plan = view.plan
    pairs = sorted({len(cell.pairs) for cell in plan.cells})
    count = f"{pairs[0]}" if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
    together = " at once" if pairs[-1] > 1 else ""
    times = method.sentences(view.info, view.every, [])[0]
    names = listed([f"{pair}".replace("->", "→") for pair in plan.cells[0].pairs]) if len(pairs) == 1 and pairs[0] <= 4 else ""
    return f"{times} {count} pair{'s' if pairs[-1] > 1 else ''} of hosts{together}{f': {names}' if names else ''}."


def _links(view: RunView) -> str:
    info = view.info
    nodes = sorted({node for cell in view.plan.cells for pair in cell.pairs for node in (pair.source, pair.destination)})
    rates = {link_rate_bps(info, node) for node in nodes}
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
        words = [facts.get("cpu_model"), facts.get("kernel"), facts.get("driver")]
        alike.setdefault(", ".join(str(word) for word in words if word), []).append(node)
    for words, nodes in alike.items():
        yield f"{listed(nodes)}: {words or 'unknown'}."


def mean_mbps(bar: Bar) -> float | None:
    known = [rate for rate in bar.mbps if rate is not None]
    return fmean(known) if known else None
