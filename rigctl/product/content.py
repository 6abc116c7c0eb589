"""Collects the content of a product page: claim, table, bars and conditions, for the fragment and the pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.used import alike_tests, unused_settings
from rigctl.base.errors import InputError
from rigctl.base.units import format_rate
from rigctl.base.values import group_by, least
from rigctl.findings.text import (
    MOST_LISTED,
    UNKNOWN,
    join_list,
    lower_first,
    numbers_text,
    plural,
    span,
    upper_first,
)
from rigctl.limits.links import link_rate_bps
from rigctl.product.added import added_claim, is_of_round_trips
from rigctl.product.claim import Claim, NoClaim, claim
from rigctl.product.switch_card import SwitchCard, switch_card
from rigctl.product.theme import Theme
from rigctl.records import Facts, RunPlan
from rigctl.report.blocks import Column, Document, Row, Table, tables_in
from rigctl.report.charts.bars import Bar, bars_of, ends_text, names_of
from rigctl.report.document import document
from rigctl.report.sections import method
from rigctl.results.summary import CellSummary
from rigctl.yamlfile import MistakesError, suggestion

_TRIPS: Final = frozenset({"p50", "p99"})
"""Columns of round trips that are shown by default."""


def _product_table(document: Document, theme: Theme) -> Table:
    """Return the table that the theme selects. Raise `MistakesError` if the run lacks one of its columns or tests."""
    table = next(tables_in(block for section in document.results for block in section.blocks), None)
    if table is None:
        raise InputError(f"run {document.run} has no results table: nothing of it was measured")
    tests = {row.test for row in table.rows}
    if wrong := [number for number in theme.tests if number not in tests]:
        text = f"tests: the run has no test {wrong[0]}. Its tests are 1 to {len(table.rows)}."
        raise _mistake(theme, ("tests",), text)
    titles = [column.title for column in table.columns]
    for number, (title, _) in enumerate(theme.columns):
        if title not in titles:
            text = f'column "{title}": the results table of this run has no such column.{suggestion(title, titles)}'
            raise _mistake(theme, ("columns", number), text)
    rows = [row for row in table.rows if not theme.tests or row.test in theme.tests]
    in_effect = [_in_effect(table, rows, at) for at in range(len(titles))]
    chosen = [(titles.index(title), own) for title, own in theme.columns] or [
        (shown, _word(column.title, theme))
        for column, shown in zip(table.columns, in_effect, strict=True)
        if _is_kept(rows, shown, column, set(titles) >= _TRIPS)
    ]
    columns = (replace(table.columns[at], title=own) for at, own in chosen)
    filtered = (replace(row, entries=tuple(row.entries[at] for at, _ in chosen)) for row in rows)
    return replace(table, columns=tuple(columns), rows=tuple(filtered), label=theme.words.results)


def _mistake(theme: Theme, path: tuple[str | int, ...], text: str) -> InputError:
    return InputError(text) if theme.source is None else MistakesError([theme.source.mistake(path, text)])


def _in_effect(table: Table, rows: Sequence[Row], at: int) -> int:
    """Return the index of the column with the effective values of setting `at`, or `at` if they are as requested."""
    asked = table.columns[at].name or table.columns[at].title
    effective = next((number for number, column in enumerate(table.columns) if column.granted == asked), at)
    both = [(row.entries[at].text, row.entries[effective].text) for row in rows if row.entries[at].value is not None]
    return effective if any(text not in (wanted, UNKNOWN) for wanted, text in both) else at


def _is_kept(rows: Sequence[Row], at: int, column: Column, is_of_trips: bool) -> bool:
    """Tell whether a column is shown by default: a setting that varies, a measured figure, or the efficiency.

    Of ping-pong only the median and the 99th percentile of the round trips are shown.
    """
    if column.group != "requested":
        return column.title in _TRIPS if is_of_trips else column.group == "measured" or column.title == "Efficiency"
    return at == 0 or len({row.entries[at].text for row in rows}) > 1


def _word(text: str, theme: Theme) -> str:
    """Return `text` with `goodput` replaced by the theme's word."""
    return text.replace("Goodput", theme.words.goodput).replace("goodput", lower_first(theme.words.goodput))


@dataclass(frozen=True, slots=True)
class Product:
    """All content of a product page and its pictures."""

    theme: Theme
    run: str
    claim: Claim | NoClaim | None  # None if the theme disables claims
    table: Table
    bars: tuple[Bar, ...]
    conditions: tuple[tuple[str, str], ...]  # conditions of the measurement, such as the hosts: names and texts
    source: str  # last line: date, and whether the rig was virtual
    summary: str  # sentence on what was measured, for a page without a claim
    keys: tuple[str, ...] = ()  # legend of the bars; empty if no legend is needed
    card: SwitchCard | None = None  # for a run with parts, in place of table and bars
    footnote: str = ""  # sentence on requests that had no effect, for the fragment and the pictures
    control: str = ""  # what was added to the control, for the fragment and the pictures

    @property
    def title(self) -> str:
        return f"{self.theme.name}: {lower_first(self.theme.words.results)}"

    @property
    def notes(self) -> str:
        """Return the sentences below the table and the bars."""
        return f"{self.footnote} {self.control}".strip()

    @property
    def claimed(self) -> Claim | None:
        return self.claim if isinstance(self.claim, Claim) else None


def product(view: RunView, theme: Theme) -> Product:
    """Return the content of a run's product page. Raise `MistakesError` if the theme does not fit the run."""
    info, report = view.info, document(view)
    if view.plan.parts:
        return _product_of_parts(view, report, theme)
    table = _product_table(report, theme)
    tests = [row.test for row in table.rows if row.test is not None]
    cells = () if view.plan.in_messages else tuple(cell for cell in view.cells if cell.cell.number in tests)
    bars = bars_of(cells)
    supported = None
    if theme.claim.made:
        supported = (added_claim if is_of_round_trips(view) else claim)(view, theme.claim, tests)
    return Product(
        theme=theme,
        run=info.run,
        claim=supported,
        table=table,
        bars=bars,
        conditions=tuple(_conditions(view, report, supported)),
        source=_source(view),
        summary=_summary(view, bars, len(table.rows)),
        keys=names_of(cells),
        footnote=" ".join(_footnotes(cells)),
        control=" ".join(_beside_control(view, report)),
    )


def _product_of_parts(view: RunView, report: Document, theme: Theme) -> Product:
    """Return the content for a run with parts: the card of a switch. Raise `InputError` if the run supports none."""
    card = switch_card(view)
    if card is None:
        raise InputError(
            f"run {view.info.run}: a run with parts makes a card of a switch, which needs a part with test: udp, "
            f"rate: max. Its parts are {join_list(view.plan.parts)}. Measure what the page shows in a run of its own"
        )
    for key, given in (("columns", theme.columns), ("tests", theme.tests)):
        if given:
            text = f"{key}: a run with parts is shown as a card, which has its own rows and columns. Leave {key} out."
            raise _mistake(theme, (key,), text)
    return Product(
        theme=theme,
        run=view.info.run,
        claim=None,  # each figure of the card is rounded against itself
        table=Table((), (), label=theme.words.results),
        bars=(),
        conditions=tuple(_conditions(view, report, None)),
        source=_source(view),
        summary=card.summary,
        card=card,
    )


def _source(view: RunView) -> str:
    """Return the last line: when the run was measured, and whether on a virtual rig."""
    virtual = " on a virtual rig: no product was connected" if view.plan.virtual is not None else ""
    return f"Measured on {datetime.fromtimestamp(view.info.started_at, UTC):%-d %B %Y}{virtual}."


def _footnotes(cells: Sequence[CellSummary]) -> Iterator[str]:
    """Yield a sentence per setting whose requested values differ without effect, and the tests that are then alike."""
    alike = [numbers_text(numbers) for numbers in alike_tests(cells)]
    same = f", so {join_list(alike)} have the same settings" if alike else ""
    for setting, used in unused_settings(cells).items():
        phrase = setting.phrase or str
        asked = dict.fromkeys(cell.cell[setting] for cell in cells if cell.cell[setting] is not None)
        words = upper_first(join_list([str(phrase(value)) for value in asked]))
        yield f"{words} were requested; {phrase(used)} was used in every test{same}."


def _beside_control(view: RunView, report: Document) -> Iterator[str]:
    """Yield what the run adds to its control, and what the control was."""
    if view.control is not None:
        yield from (finding.text for finding in report.findings if finding.code == "control")
        yield f"The control is the same scenario on {view.control.plan.rig_name}."


def _summary(view: RunView, bars: Sequence[Bar], tests: int) -> str:
    """Return a phrase on what was measured: `7 tests of 2 pairs at once, 911 to 941 Mbit/s on each pair`."""
    pairs = {len(cell.pairs) for cell in view.plan.cells}
    several = len(pairs) == 1 and pairs != {1}
    text = f"{plural(tests, 'test')}{f' of {pairs.pop()} pairs at once' if several else ''}"
    if not any(rate for bar in bars for rate in bar.rates):
        return text
    return f"{text}, {ends_text(bars)} Mbit/s{' on each pair' if several else ''}"


def _conditions(view: RunView, report: Document, supported: Claim | NoClaim | None) -> Iterator[tuple[str, str]]:
    info = view.info
    if isinstance(supported, Claim):
        yield "Claim", f"{upper_first(supported.basis)}. {supported.limits}".rstrip()
    if view.control is not None:
        yield "Control", f"{' '.join(_beside_control(view, report))} It is run {view.control.info.run}."
    if view.plan.virtual is not None:
        text = "Network namespaces of one computer take the place of hosts and switch. The figures are not a product's."
        yield "Virtual rig", text
    yield from (("Experimental", finding.text) for finding in method.experimental_findings(view))
    times, *sentences = method.sentences(replace(info, versions={}), view.every, [])
    yield "Tests", f"{times} {_pairs(view)}."
    yield "Links", _links(view)
    if alike := group_by(sorted(info.facts), lambda node: _host_text(info.facts[node])):
        yield "Hosts", " ".join(f"{join_list(nodes)}: {words}." for words, nodes in alike.items())
    parts = [own for name in view.plan.parts if (own := view.of_part(name)) is not None] or [view]
    techniques = dict.fromkeys(f"{_technique(own.plan)}." for own in parts)
    tool = f"Measured with rigctl {info.versions.get('rigctl', '')}".rstrip() + "."
    yield "Method", " ".join([*techniques, *sentences, tool])
    yield "Rounding", f"{_rounding(view.plan)}."
    files = f"Scenario {info.plan.scenario_name}, rig {info.plan.rig_name}."
    yield "Run", f"{info.run}, {', '.join(report.about[1:])}. {files}"


def _rounding(plan: RunPlan) -> str:
    """Return how the printed figures follow from repetitions and pairs, and how they are rounded."""
    if plan.parts:
        slowest = "Rates and shares are those of the slowest port, rounded down"
        return f"{slowest}; delays are differences of medians, rounded up"
    means = "Goodput and efficiency are means over repetitions"
    if plan.in_messages:
        means = "Round trips are those of all repetitions together, times are means over repetitions"
    return f"{means}, rounded as in the report; a claim is rounded against itself"


def _technique(plan: RunPlan) -> str:
    """Return what tests of these kinds count or time, and where."""
    kinds = join_list(sorted({cell.kind.title for cell in plan.cells}))
    if plan.in_messages:
        return f"{kinds}: timed at the senders, from the call that sends to the whole answer"
    return f"{kinds}: bytes counted at the receivers in the time in which all flows ran"


def _host_text(facts: Facts) -> str:
    return ", ".join(str(facts[name]) for name in ("cpu_model", "kernel", "driver") if facts.get(name)) or "unknown"


def _pairs(view: RunView) -> str:
    counts = sorted({len(cell.pairs) for cell in view.plan.cells})
    count = span(map(str, (counts[0], counts[-1])))
    text = f"{count} pairs of hosts at once" if counts[-1] > 1 else f"{count} pair of hosts"
    if len(counts) > 1 or counts[0] > MOST_LISTED:
        return text
    return f"{text}: {join_list(list(map(str, view.plan.cells[0].streams)))}"


def _links(view: RunView) -> str:
    nodes = {node for cell in view.plan.cells for stream in cell.streams for node in stream.ends}
    rates = sorted(filter(None, {link_rate_bps(view.info, node) for node in nodes}))
    text = " and ".join(map(format_rate, rates)) or "of unknown rate"
    streams = () if view.plan.in_messages else [stream for cell in view.cells for stream in cell.streams]
    if mtu := least(stream.mtu for stream in streams):
        text += f", MTU {mtu}"
        if mss := sorted({stream.mss_effective for stream in streams if stream.mss_effective}):
            text += f"; segments of {join_list([str(size) for size in mss])} bytes went over the wire"
    return f"{text}."
