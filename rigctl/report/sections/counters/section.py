"""What switches and interfaces counted beside the flows, as rows, sentences and lines for a chart."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rigctl.analysis.balances import TRUNK, Balance, Balances, Total
from rigctl.model.counters.balance import MOST_DIFFERENCE, Reconciliation
from rigctl.model.counters.losses import Attribution, Where
from rigctl.model.counters.places import Counted, Place, Spot, Wiring, summed
from rigctl.model.counters.rises import mean_bps, rates, together
from rigctl.records import PortSeries, Repetition, RunInfo, RunPlan, Status
from rigctl.report.text import UNKNOWN, count_text, listed, plural, rate_text, settings_text
from rigctl.units import format_rate

MOST_ROWS: Final = 500
LEAST_EXPLAINED: Final = 0.001
"""A smaller share apart needs no reason."""
MOST_NAMED: Final = 4
"""Places and tests that a sentence names; the others are in the tables."""


class PortRate(NamedTuple):
    """A line for a chart: seconds from the start of the common window (middles of intervals), Mbit/s with headers."""

    name: str
    t_s: list[float]
    mbps: list[float]


@dataclass(frozen=True, slots=True)
class CellRow:
    """One test: Mbit/s that the flows and their headers make, and that were counted; texts as the page prints them."""

    number: int
    settings: str
    expected: str
    counted: str
    difference: str  # percent
    flagged: bool
    note: str


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One direction of an interface or port over the whole run; octets in MB (10^6)."""

    place: str
    way: str
    carries: str  # "data", "acknowledgements"
    expected: str
    counted: str
    difference: str
    drops: str
    errors: str
    flagged: bool
    note: str


@dataclass(frozen=True, slots=True)
class CountersSection:
    """All that the page and the terminal say of counters. `where`: what the rows of `cells` are of."""

    sentences: tuple[str, ...]
    where: str
    cells: tuple[CellRow, ...]
    cells_left: int
    places: tuple[PlaceRow, ...]


def section(
    info: RunInfo, repetitions: Sequence[Repetition], balances: Balances | None = None
) -> CountersSection | None:
    """The section of a run; `None` where no switch was asked and no interface's counters explain anything.

    `balances` are those of `repetitions`, where they are made already.
    """
    asked = any(one.counters or one.counters_missing for one in repetitions)
    if not asked and not any(usage.nic for one in repetitions for usage in one.nodes):
        return None
    made = balances if balances is not None else Balances(info, repetitions)
    each = [one for one in made.each if one.repetition.status is Status.OK]
    whole = made.whole()
    losses = loss_words([item for one in each for item in one.lost])
    sentences = [*run_words(each, whole), *flag_words(each), *missing_words(repetitions), *losses]
    if not asked and not any(item.where is not Where.UNATTRIBUTED for one in each for item in one.lost):
        return None
    rows = cell_rows(info.plan, each)
    return CountersSection(
        tuple(sentences),
        next((one.total.where for one in each if one.total is not None), TRUNK),
        tuple(rows[:MOST_ROWS]),
        max(0, len(rows) - MOST_ROWS),
        place_rows(whole),
    )


def run_words(each: Sequence[Balance], whole: dict[Place, tuple[Reconciliation, Counted]]) -> list[str]:
    """The counters against the flows: as rates where there was one test, as octets of the whole run else."""
    totals = [(one, one.total) for one in each if one.total is not None]
    if not totals:
        return []
    one_test = len({one.repetition.cell for one, _ in totals}) == 1
    where = totals[0][1].where
    if one_test and all(total.difference_pct is not None for _, total in totals):
        took_s = sum(one.traffic_s for one, _ in totals)
        counted = sum(total.counted or 0 for _, total in totals)
        expected = sum(total.expected or 0 for _, total in totals)
        again = sum(total.again for _, total in totals)
        return [_apart(where, "", (_rate(counted, took_s), _rate(expected, took_s)), (counted, expected), again)]
    sums = _whole_sums(where, whole)
    if sums is None:
        return []
    counted, expected, again = sums
    return [_apart(where, "Over the whole run ", (_amount(counted), _amount(expected)), (counted, expected), again)]


def _whole_sums(where: str, whole: dict[Place, tuple[Reconciliation, Counted]]) -> tuple[int, int, int] | None:
    """Octets counted, expected and sent again over the run where `total_of` took them for the repetitions."""
    wanted = (Spot.TRUNK_OUT, Spot.TRUNK_IN) if where == TRUNK else (Spot.PORT_IN, Spot.PORT_OUT)
    for spot in wanted:
        parts = [one for place, (one, _) in whole.items() if place.spot is spot and one.carries_data]
        pairs = [(one.counted, one.expected) for one in parts if not one.coarse]
        known = [(counted, sent) for counted, sent in pairs if counted is not None and sent is not None]
        if parts and len(known) == len(parts):
            again = sum(one.again for one in parts)
            return sum(counted for counted, _ in known), sum(sent for _, sent in known), again
    return None


def _apart(where: str, when: str, said: tuple[str, str], octets: tuple[int, int], again: int) -> str:
    """The counters and the flows, `said` in words and in octets; what was sent again explains what is missing."""
    counted, expected = octets
    share = abs(counted - expected) / expected if expected else 0.0
    name = "the trunk's counters" if where == TRUNK else "the switch ports' counters"
    missing = expected - counted
    why = ""
    if share >= LEAST_EXPLAINED and 0 < missing <= (1 + MOST_DIFFERENCE) * again:
        why = ", no more than what was lost on the way there and sent again"
    sentence = f"{when}{name} say {said[0]}, the flows and their headers {said[1]}: {_percent(share)} apart{why}."
    return sentence[0].upper() + sentence[1:]


def flag_words(each: Sequence[Balance]) -> list[str]:
    """Tests whose counters don't fit their flows, and those for which the counters are too coarse."""
    said = []
    flagged = {one.repetition.cell: one.total for one in each if one.total is not None and one.total.flagged}
    elsewhere = {one.repetition.cell for one in each if any(place.flagged for place in one.places.values())}
    if flagged:
        named = [f"test {cell} ({_signed(total.difference_pct)} %)" for cell, total in sorted(flagged.items())]
        said.append(
            f"More than {100 * MOST_DIFFERENCE:g} % apart in {_some(named)}: {next(iter(flagged.values())).why}."
        )
    others = sorted(elsewhere - set(flagged))
    if others:
        said.append(
            f"At single ports more than {100 * MOST_DIFFERENCE:g} % apart in {_some([f'test {n}' for n in others])}."
        )
    coarse = [one for one in each if one.total is not None and one.total.coarse]
    if coarse:
        cells = {one.repetition.cell for one in coarse}
        of_all = len({one.repetition.cell for one in each})
        which = f"{len(cells)} of {plural(of_all, 'test')}" if of_all > 1 else "this test"
        why = coarse[0].total.why if coarse[0].total is not None else ""
        said.append(f"No difference is given for {which}: the counters are {why}.")
    return said


def missing_words(repetitions: Iterable[Repetition]) -> list[str]:
    """Each switch that did not answer, once."""
    told = Counter(sentence.rstrip(".") for one in repetitions for sentence in one.counters_missing)
    return [f"{sentence}: no counters in {plural(times, 'measurement')}." for sentence, times in sorted(told.items())]


def loss_words(lost: Sequence[Attribution]) -> list[str]:
    """Where the segments that were sent again had been lost, most first."""
    segments: Counter[tuple[Where, str]] = Counter()
    evidence: dict[tuple[Where, str], str] = {}
    for one in lost:
        segments[one.where, one.name] += one.segments_about
        evidence.setdefault((one.where, one.name), one.evidence)
    every = sum(segments.values())
    if not every:
        return []
    said = []
    named = [
        (key, number) for key, number in segments.most_common() if key[0] not in (Where.NOWHERE, Where.UNATTRIBUTED)
    ]
    for key, number in named[:MOST_NAMED]:
        only = f" ({evidence[key]})" if len(lost) == 1 else ""
        said.append(f"about {number} ({100 * number / every:.0f} %) were lost {_place_words(key[1])}{only}")
    if len(named) > MOST_NAMED:
        rest = sum(number for _, number in named[MOST_NAMED:])
        said.append(f"about {rest} at {len(named) - MOST_NAMED} other places")
    for where, words in (
        (
            Where.NOWHERE,
            "about {} came in at the receivers' interfaces: dropped behind those, or sent again needlessly",
        ),
        (Where.UNATTRIBUTED, "where about {} were lost is not known: no counter shows it"),
    ):
        number = sum(count for key, count in segments.items() if key[0] is where)
        if number:
            said.append(words.format(number))
    return [f"Of about {plural(every, 'segment')} sent again from first byte to last, {listed(said)}."]


def _place_words(name: str) -> str:
    """`at switch b, port p3`, `on the cable from …`, `between … and …`."""
    if name.startswith(("between ", "before ")):
        return name
    return f"on {name}" if name.startswith("the cable ") else f"at {name}"


def cell_rows(plan: RunPlan, each: Sequence[Balance]) -> list[CellRow]:
    """One row per test with counters, over its repetitions that count."""
    by_cell: dict[int, list[tuple[Balance, Total]]] = {}
    for one in each:
        if one.total is not None:
            by_cell.setdefault(one.repetition.cell, []).append((one, one.total))
    pairs = len({len(cell.pairs) for cell in plan.cells}) > 1
    settings = {cell.number: settings_text(cell, pairs) for cell in plan.cells}
    return [_cell_row(number, settings[number], by_cell[number]) for number in sorted(by_cell)]


def _cell_row(number: int, settings: str, parts: Sequence[tuple[Balance, Total]]) -> CellRow:
    took_s = sum(one.traffic_s for one, _ in parts)
    expected = summed([total.expected for _, total in parts])
    counted = summed([None if total.coarse else total.counted for _, total in parts])
    known = expected and counted is not None
    difference = 100 * (counted - expected) / expected if known and expected and counted is not None else None
    return CellRow(
        number,
        settings,
        rate_text(None if expected is None or not took_s else expected * 8e-6 / took_s),
        rate_text(None if counted is None or not took_s else counted * 8e-6 / took_s),
        _signed(difference),
        any(total.flagged for _, total in parts),
        next((total.why for _, total in parts if total.why), "") or "",
    )


def place_rows(whole: dict[Place, tuple[Reconciliation, Counted]]) -> tuple[PlaceRow, ...]:
    """Every place over the whole run, in the order of the way."""
    return tuple(
        PlaceRow(
            str(place),
            str(place.way),
            "data" if balance.carries_data else "acknowledgements",
            UNKNOWN if balance.expected is None else f"{balance.expected / 1e6:.1f}",
            UNKNOWN if balance.counted is None else f"{balance.counted / 1e6:.1f}",
            _signed(balance.difference_pct),
            count_text(counted.drops),
            count_text(counted.damaged),
            balance.flagged,
            balance.why or "",
        )
        for place, (balance, counted) in whole.items()
    )


def port_rates(plan: RunPlan, repetition: Repetition, most: int) -> list[PortRate]:
    """The counters' rate over time: the trunk's in each direction that data flow, or all senders' ports together.

    Neighbouring readings are put together where a line had more than `most` points.
    """
    if repetition.window_start_ns is None:
        return []
    series = {(one.switch, one.port): one for one in repetition.counters}
    crossings = Wiring(plan.ports, plan.trunk).crossings(repetition.flows)
    data = [place for place, crossing in crossings.items() if crossing.payload != 0]
    for spot in (Spot.TRUNK_OUT, Spot.TRUNK_IN, Spot.PORT_IN, Spot.PORT_OUT):
        places = [place for place in data if place.spot is spot]
        if not places or any((place.owner, port) not in series for place in places for port in place.ports):
            continue
        if spot in (Spot.TRUNK_OUT, Spot.TRUNK_IN):
            lines = [_line(f"trunk, {place} {place.way}", [place], series, repetition, most) for place in places]
        else:
            lines = [_line("switch ports, sum", places, series, repetition, most)]
        return [line for line in lines if line is not None]
    return []


def _line(
    name: str, places: Sequence[Place], series: dict[tuple[str, str], PortSeries], repetition: Repetition, most: int
) -> PortRate | None:
    """Several ports' rates summed over those intervals of the first one that lie within the common window."""
    every = [rates(series[place.owner, port], place.way) for place in places for port in place.ports]
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    if start_ns is None or end_ns is None or not every or not all(every):
        return None
    inside = together([one for one in every[0] if start_ns <= one.start_ns and one.end_ns <= end_ns], most)
    if not inside:
        return None
    summed = [(one, sum(mean_bps(other, one.start_ns, one.end_ns) for other in every)) for one in inside]
    return PortRate(
        name,
        [((one.start_ns + one.end_ns) / 2 - start_ns) / 1e9 for one, _ in summed],
        [bps / 1e6 for _, bps in summed],
    )


def _rate(octets: int, took_s: float) -> str:
    return format_rate(octets * 8 / took_s) if took_s else UNKNOWN


def _amount(octets: int) -> str:
    return f"{octets / 1e9:.4g} GB" if octets >= 1e9 else f"{octets / 1e6:.4g} MB"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"


def _signed(percent: float | None) -> str:
    return UNKNOWN if percent is None else f"{percent:+.2f}"


def _some(words: Sequence[str]) -> str:
    if len(words) <= MOST_NAMED:
        return listed(words)
    return f"{plural(len(words), 'test')}, as {listed(words[:MOST_NAMED])}"
