"""The content of a product's page as records: claim, table, bars, conditions. Fragment and pictures print it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rigctl.analysis.limits.ceiling import link_rate_bps
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.model.unknowns import least
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Document, Table
from rigctl.report.document import document
from rigctl.report.product.claim import Claim, NoClaim, claim, floored_text
from rigctl.report.product.table import product_table
from rigctl.report.product.theme import Theme
from rigctl.report.sections import method
from rigctl.report.words.text import MOST_LISTED, ceiling_text, listed, plural, settings_text, span, told_apart


@dataclass(frozen=True, slots=True)
class Bar:
    """One test: goodput of each pair, in Mbit/s, means over repetitions."""

    test: int
    settings: str
    mbps: tuple[float | None, ...]
    ceiling_mbps: float | None  # of a pair


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of the measurement: its name and a text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Product:
    """All that is published of a product."""

    theme: Theme
    run: str
    claim: Claim | NoClaim | None  # None: the theme wants none
    table: Table
    bars: tuple[Bar, ...]
    conditions: tuple[Term, ...]
    source: str  # one line below everything that is published: date, virtual or not
    summary: str  # what was measured, where nothing is claimed
    keys: tuple[str, ...] = ()  # names of a test's bars, if all tests have the same

    @property
    def title(self) -> str:
        results = self.theme.words.results
        return f"{self.theme.name}: {results[:1].lower()}{results[1:]}"

    @property
    def claimed(self) -> Claim | None:
        return self.claim if isinstance(self.claim, Claim) else None


def product(info: RunInfo, repetitions: Sequence[Repetition], theme: Theme) -> Product:
    """Return the page's content for a run. Raise `MistakesError` if the theme does not fit the run."""
    view = RunView(info, repetitions)
    report = document(info, repetitions)
    table = product_table(report, view, theme)
    tests = [row.test for row in table.rows if row.test is not None]
    bars = tuple(_bars(view, tests))
    made = claim(view, theme.claim, tests) if theme.claim.made else None
    streams = {cell.streams for cell in view.plan.cells}
    virtual = " on a virtual rig: no product was connected" if info.plan.virtual is not None else ""
    return Product(
        theme=theme,
        run=info.run,
        claim=made,
        table=table,
        bars=bars,
        conditions=tuple(_conditions(view, report, made)),
        source=f"Measured on {datetime.fromtimestamp(info.started_at, UTC):%-d %B %Y}{virtual}.",
        summary=_summary(view, bars, len(table.rows)),
        keys=tuple(map(str, streams.pop())) if len(streams) == 1 and not view.plan.in_messages else (),
    )


def _bars(view: RunView, tests: Sequence[int]) -> Iterator[Bar]:
    """Yield a bar for each of `tests`. Settings that all tests share are left out."""
    if view.plan.in_messages:
        return
    cells = [cell for cell in view.cells if cell.cell.number in tests]
    pairs = told_apart(cell.cell for cell in cells)
    words = [settings_text(cell.cell, pairs).split(", ") for cell in cells]
    common = set(words[0]).intersection(*words) if len(words) > 1 else set()
    for cell, own in zip(cells, words, strict=True):
        rates = tuple(None if stream.goodput_mbps is None else stream.goodput_mbps.mean for stream in cell.streams)
        ceilings = {round(stream.ceiling_mbps, 1) for stream in cell.streams if stream.ceiling_mbps is not None}
        ceiling = ceilings.pop() if len(ceilings) == 1 and not cell.shared else None
        yield Bar(cell.cell.number, ", ".join(word for word in own if word not in common), rates, ceiling)


def _summary(view: RunView, bars: Sequence[Bar], tests: int) -> str:
    """Return `7 tests of 2 pairs at once, 911 to 941 Mbit/s on each pair`."""
    rates = [rate for bar in bars for rate in bar.mbps if rate is not None]
    pairs = {len(cell.pairs) for cell in view.plan.cells}
    several = len(pairs) == 1 and pairs != {1}
    text = f"{plural(tests, 'test')}{f' of {pairs.pop()} pairs at once' if several else ''}"
    if not rates:
        return text
    ends = span(map(floored_text, (min(rates), max(rates))))
    return f"{text}, {ends} Mbit/s{' on each pair' if several else ''}"


def _conditions(view: RunView, report: Document, made: Claim | NoClaim | None) -> Iterator[Term]:
    info = view.info
    if isinstance(made, Claim):
        ceiling = f"{made.link} allows {ceiling_text(made.ceiling_mbps)} Mbit/s of application data."
        slowest = f"The slowest of {made.repetitions} repetitions of the slowest pair, rounded down."
        yield Term("Claim", f"{slowest} For its frames {ceiling}")
    if view.plan.virtual is not None:
        text = "Network namespaces of one computer take the place of hosts and switch. The figures are not a product's."
        yield Term("Virtual rig", text)
    times, *sentences = method.sentences(replace(info, versions={}), view.every, [])
    yield Term("Tests", f"{times} {_pairs(view)}.")
    yield Term("Links", _links(view))
    alike: dict[str, list[str]] = {}
    for node, facts in sorted(info.facts.items()):
        known = [str(facts[name]) for name in ("cpu_model", "kernel", "driver") if facts.get(name)]
        alike.setdefault(", ".join(known) or "unknown", []).append(node)
    if alike:
        yield Term("Hosts", " ".join(f"{listed(nodes)}: {words}." for words, nodes in alike.items()))
    kinds = listed(sorted({cell.kind.title for cell in view.plan.cells}))
    technique = f"{kinds}, counted at the receiver, sums over the time in which all flows ran"
    tool = f"Measured with rigctl {info.versions.get('rigctl', '')}".rstrip() + "."
    yield Term("Method", " ".join([f"{technique}.", *sentences, tool]))
    yield Term("Rounding", "Goodput and efficiency are means over repetitions, rounded down.")
    yield Term("Run", f"{info.run}, {report.about[-1]}. Scenario {info.plan.scenario_name}, rig {info.plan.rig_name}.")


def _pairs(view: RunView) -> str:
    counts = sorted({len(cell.pairs) for cell in view.plan.cells})
    count = span(map(str, (counts[0], counts[-1])))
    text = f"{count} pairs of hosts at once" if counts[-1] > 1 else f"{count} pair of hosts"
    if len(counts) > 1 or counts[0] > MOST_LISTED:
        return text
    return f"{text}: {listed([str(stream) for stream in view.plan.cells[0].streams])}"


def _links(view: RunView) -> str:
    nodes = {node for cell in view.plan.cells for stream in cell.streams for node in stream.ends}
    rates = {link_rate_bps(view.info, node) for node in nodes}
    text = " and ".join(format_rate(rate) for rate in sorted(filter(None, rates))) or "of unknown rate"
    streams = () if view.plan.in_messages else [stream for cell in view.cells for stream in cell.streams]
    if mtu := least(stream.mtu for stream in streams):
        text += f", MTU {mtu}"
        if mss := sorted({stream.mss_effective for stream in streams if stream.mss_effective}):
            text += f"; segments of {listed([str(size) for size in mss])} bytes went over the wire"
    return f"{text}."
