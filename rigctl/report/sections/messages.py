"""Report parts on ping-pong, blast and file transfers: results by message size, and their findings."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import Final, NamedTuple

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import format_bytes, size_words
from rigctl.base.values import divide, group_by
from rigctl.figures import messages as figures
from rigctl.figures.effective import NODELAY_IN_USE
from rigctl.findings import Finding, Severity, Statement, Weight, goodput, latency, loss, tests
from rigctl.findings.goodput import excess_findings
from rigctl.findings.text import (
    join_list,
    numbers_text,
    percent_text,
    plural,
    rate_text,
    tests_named,
    texts_that_vary,
    time_text,
    upper_first,
)
from rigctl.limits.ceilings import percent, reaches
from rigctl.model.latency import count_between, peaks_ns
from rigctl.report.blocks import Chart, Charts, Column, Key, Part, Table
from rigctl.report.charts.bars import Bar, bars_chart
from rigctl.report.charts.plot import MOST_COLOURS, WIDE, Axis, Band, Dots, Mark, plot, stream_colours
from rigctl.report.charts.plot import Line as Drawn
from rigctl.report.tables import requested
from rigctl.report.tables.columns import each, number_column, to_decimals
from rigctl.report.tables.messages import (
    EFFICIENCY_COLUMN,
    ITERATIONS_COLUMN,
    SIZE_COLUMN,
    MessageResults,
    ResultColumn,
    ceiling_bytes,
    message_table,
    microseconds,
    share,
    time,
    to_microseconds,
)
from rigctl.results.summary import Estimate
from rigctl.settings import BUSY_POLL, READ, WRITE

TIMES: Final = "messages"
_BLAST_METHOD: Final = (
    "The sender sends messages one after the other; the receiver answers with one byte when it has received all of "
    "them. Elapsed: from the first send to that byte, on the sender's clock."
)
_TRIP_METHOD: Final = (
    "The receiver returns each message when it has arrived completely; then the sender sends the next one. Elapsed: "
    "from the first send to the last answer, on the sender's clock. Mean, least and largest round trip are exact; "
    "percentiles come from a histogram, within 0.4 %."
)
_PLACES: Final = (
    "Without busy polling both ends sleep while they wait, and run where the scheduler puts them unless `placement` "
    "says otherwise. A processor that has to be woken for each message takes longer: `placement: packets` runs each "
    "end on the processor at which its packets arrive."
)
_CONNECTIONS: Final = "Each repetition opens a new connection; the time of its handshake is not counted."
_NOISY: Final = 0.05
"""A variation above this share of the mean is reported."""
_REACHED: Final = (0.93, 0.97)
"""The answer on blast tests says from which size on these shares of the ceiling are reached."""
_ROWS_OF_EXCEPTION: Final = 8
"""One in this number of sizes may be an exception, which is named, so that a noisy size does not move the answer."""
_FLAT: Final = 1.25
"""Round trips within this factor of the smallest size's round trip count as about the same."""
_DELAYED_NS: Final = (36e6, 50e6)
"""Range of round trips that suggests a delayed acknowledgement: Linux delays by 40 ms at first (TCP_DELACK_MIN)."""
_TIMEOUT_NS: Final = (190e6, 260e6)
"""Range of round trips that suggests a retransmission timeout, which is at least 200 ms (TCP_RTO_MIN, RFC 6298)."""
_USUAL_SHARE: Final = 0.5
"""Long round trips are reported only if the median round trip is below this share of the range's lower end."""
_HEIGHT: Final = 260


def part(view: RunView) -> Part:
    """Return the report part on ping-pong and blast tests; `view` has only these."""
    trips = view.plan.cells[0].kind.round_trips
    findings = [*_message_findings(view), *message_round_trips(view.messages)]
    if view.plan.virtual == "namespaces":
        findings.append((latency.SHAPED_TRIPS if trips else latency.SHAPED_BLASTS).say())
    return Part(
        findings=tuple(findings),
        results=_messages_table(view.messages, trips=trips, notes=_retest_notes(view)),
        picture=_picture(view, trips=trips),
        method=(_TRIP_METHOD, _PLACES, _CONNECTIONS) if trips else (_BLAST_METHOD, _CONNECTIONS),
    )


def _retest_notes(view: RunView) -> dict[int, str]:
    """Return the notes on tests that were measured again, by number."""
    if view.retested is None:
        return {}
    counts = {result.cell.number: len(result.elapsed_s) for result in view.all_messages}
    first = f"Measured again: this row has the first {plural(view.plan.repeat, 'repetition')}"
    return {
        cell.number: f"{first}, the answer and the chart have all {counts[cell.number]}."
        for cell in view.retested.plan.cells
    }


def _picture(view: RunView, *, trips: bool) -> Charts | None:
    """Return the chart of round trips (median, band up to the 99th percentile) or of throughput by message size."""
    drawn = _lines(view.all_messages)
    again = {cell.number for cell in view.retested.plan.cells} if view.retested else frozenset[int]()
    chart = message_chart(drawn, trips=trips, again=again)
    if chart is None:
        return None
    names = [line.name for line in drawn]
    own = map(Key, names, stream_colours(len(names))) if 1 < len(names) <= MOST_COLOURS else ()
    return Charts((chart,), (*own, *(() if trips else (Key("ceiling", "ceiling"),))), wide=True)


def _messages_table(results: MessageResults, *, trips: bool, notes: Mapping[int, str]) -> Table:
    """Return the table of ping-pong or blast: size, iterations, elapsed times, then round trips or throughput."""
    if trips:
        return message_table(results, [SIZE_COLUMN, ITERATIONS_COLUMN], _ROUND_TRIPS, notes)
    logarithm: ResultColumn = number_column(
        "log2(size)", "", lambda result: math.log2(result.size) if result.size else None, to_decimals(3), "requested", 3
    )
    derived: list[ResultColumn] = [
        each(Column("Throughput", "byte/s", "derived", minor=-1), lambda result: result.bytes_per_s, "{:,.0f}".format),
        each(Column("Ceiling", "byte/s", "derived", minor=1), ceiling_bytes, "{:,.0f}".format),
        EFFICIENCY_COLUMN,
    ]
    return message_table(results, [SIZE_COLUMN, logarithm, ITERATIONS_COLUMN], derived, notes)


_ROUND_TRIPS: Final[tuple[ResultColumn, ...]] = (
    microseconds("RTT mean", itemgetter(figures.ROUND_TRIP)),
    microseconds("min", itemgetter(figures.ROUND_TRIP_MIN), minor=1),
    microseconds("p50", itemgetter(figures.ROUND_TRIP_P50), minor=-1),
    microseconds("p90", itemgetter(figures.ROUND_TRIP_P90), minor=1),
    microseconds("p99", itemgetter(figures.ROUND_TRIP_P99), minor=-1),
    microseconds("p99.9", itemgetter(figures.ROUND_TRIP_P999), minor=2),
    microseconds("max", itemgetter(figures.ROUND_TRIP_MAX), minor=1),
)


def _message_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings on ping-pong and blast tests, the answer first."""
    counted = [result for result in view.all_messages if result.elapsed_s]
    if not counted:
        return
    trips = counted[0].cell.kind.round_trips
    if not view.meshes:
        yield from _trip_answer(view, counted) if trips else _blast_answer(counted)
    if not trips:
        yield from excess_findings(view.info, counted)
    yield from _noisy(counted, again=view.plan.retest is not None)
    yield from _no_answer_findings(counted)


def _trip_answer(view: RunView, counted: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield the answer (shortest median round trip, growth with size), then a finding for each slower setting."""
    printed = median_texts(view)
    best, *others = sorted(_lines(counted), key=lambda line: _median_us(line.results[0]) or float("inf"))
    small, large = best.results[0], best.results[-1]
    if _median_us(small) is None:
        return
    flat = [*takewhile(lambda one: _about_as_long(one, small), best.results)][-1]
    text = f"Median round trip {printed(small)} with {size_text(small)}{best.name and f' ({best.name})'}"
    firsts = [line.results[0] for line in (best, *others) if _median_us(line.results[0]) is not None]
    statements = [Statement(text, firsts, lambda result: (_median_us(result) or 0.0) >= (_median_us(small) or 0.0))]
    if flat.size > small.size:
        text += f", about the same up to {size_text(flat)}"
        level = [result for result in best.results if result.size <= flat.size]
        statements.append(Statement("about the same", level, lambda result: _about_as_long(result, small)))
    if large.size > flat.size:
        text += f", {printed(large)} with {size_text(large)}"
    numbers = {"app_rtt_mean_us": small[figures.ROUND_TRIP], "app_rtt_p99_us": small[figures.ROUND_TRIP_P99]}
    yield Finding(
        "round-trip",
        text,
        Weight.ANSWER,
        subject=tests([small.cell.number]),
        numbers=numbers,
        brief=f"round trip {printed(small)} ({size_text(small)})",
        statements=tuple(statements),
    )
    for line in others:
        first = line.results[0]
        words = {"settings": line.name, "size": size_text(first), "trip": printed(first)}
        yield latency.OTHER_SETTINGS.say(tests([first.cell.number]), **words)


def _about_as_long(one: MessageResult, other: MessageResult) -> bool:
    mine_us, theirs_us = _median_us(one), _median_us(other)
    return mine_us is not None and theirs_us is not None and 1 / _FLAT <= mine_us / theirs_us <= _FLAT


def _median_us(result: MessageResult) -> float | None:
    return result[figures.ROUND_TRIP_P50]


def median_texts(view: RunView) -> Callable[[MessageResult], str]:
    """Return a function that returns a result's median round trip with the decimals of the table."""
    text = to_microseconds([_median_us(result) for result in view.messages])
    return lambda result: f"{text(_median_us(result))} µs"


def all_repetitions_text(view: RunView, number: int) -> str:
    """Return the median round trip of a test over all repetitions, for the finding on its retest; else empty."""
    known = [result for result in view.all_messages if _median_us(result) is not None]
    own = [result for result in known if result.cell.number == number]
    trips = join_list(list(dict.fromkeys(map(median_texts(view), own))))
    return f"the median round trip of all {len(own[0].elapsed_s)} is {trips}" if own else ""


def _blast_answer(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield the answer: the highest throughput, and from which size on 93 and 97 % of the ceiling are reached."""
    best = max(counted, key=lambda result: result.bytes_per_s or 0.0)
    top = best.bytes_per_s or 0.0
    line = next(line for line in _lines(counted) if best in line.results)
    beside = f" ({line.name})" if line.name else ""
    text = f"Up to {top / 1e6:.1f} MB/s{_of_ceiling(best)}, with messages of {size_text(best)}{beside}"
    statements = [Statement("Up to", counted, lambda result: (result.bytes_per_s or 0.0) <= top)]
    found = [found for share in _REACHED if (found := find_reached(line.results, share, top)) is not None]
    if len({one.start for one in found}) == 1:
        found = found[-1:]
    if found and len(line.results) > 1:
        text = f"Up to {top / 1e6:.1f} MB/s{_of_ceiling(best)}{beside}; {', '.join(map(str, found))}"
        statements += [Statement(str(one), one.rows, one.holds, (*one.rows, *one.exceptions)) for one in found]
    numbers = {"throughput_bytes_per_s": top, "efficiency": best.efficiency}
    numbers |= {f"from_{percent(one.share):.0f}_pct_bytes": one.start for one in found}
    yield Finding(
        "throughput",
        text,
        Weight.ANSWER,
        subject=tests([best.cell.number]),
        numbers=numbers,
        brief=f"up to {top / 1e6:.1f} MB/s",
        statements=tuple(statements),
    )


@dataclass(frozen=True, slots=True)
class Reached:
    """From which message size on a share of the ceiling is reached, and the sizes above that do not reach it."""

    share: float
    start: int
    shares: Mapping[int, float]  # share of the ceiling by size, from `start` on
    exceptions: tuple[MessageResult, ...]
    rows: tuple[MessageResult, ...]

    def holds(self, result: MessageResult) -> bool:
        return reaches(self.shares[result.size], self.share)

    def __str__(self) -> str:
        own = [f"{percent_text(self.shares[result.size])} % with {size_text(result)}" for result in self.exceptions]
        but = f" (but {join_list(own)})" if own else ""
        return f"{percent(self.share):.0f} % from {_size_words(self.start)} on{but}"


def find_reached(results: Sequence[MessageResult], share: float, top: float) -> Reached | None:
    """Return from which size on `share` of the ceiling is reached (of `top`, in byte/s, without a ceiling), or None.

    Of the sizes from there on, one in eight, but never two in a row, may be an exception.
    """
    ordered = sorted(results, key=lambda result: result.size)
    shares = {
        result.size: (result.bytes_per_s or 0.0) / top if result.efficiency is None else result.efficiency
        for result in ordered
    }
    for at, result in enumerate(ordered):
        rest = ordered[at:]
        short = [not reaches(shares[each.size], share) for each in rest]
        most = max(1, len(rest) // _ROWS_OF_EXCEPTION)
        if short[0] or sum(short) > most or any(both == (True, True) for both in pairwise(short)):
            continue
        exceptions = tuple(each for each, own in zip(rest, short, strict=True) if own)
        rows = tuple(each for each in rest if each not in exceptions)
        return Reached(share, result.size, {each.size: shares[each.size] for each in rest}, exceptions, rows)
    return None


def _of_ceiling(result: MessageResult) -> str:
    return f" ({percent_text(result.efficiency)} % of the ceiling)" if result.efficiency is not None else ""


def _noisy(counted: Sequence[MessageResult], *, again: bool) -> Iterator[Finding]:
    shares = [(result.cell.number, (result.variation_s or 0.0) / (result.mean_s or 1.0)) for result in counted]
    noisy = [(number, share) for number, share in shares if share > _NOISY]
    if not noisy or again:
        return
    worst = sorted(noisy, key=lambda test: test[1], reverse=True)
    which = tests_named([f"test {number} ({100 * share:.0f} %)" for number, share in worst], "most in")
    yield latency.VARY.say(tests(number for number, _ in noisy), bound=100 * _NOISY, tests=which)


def _no_answer_findings(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    for result in counted:
        if result.unanswered:
            number, count = result.cell.number, result.unanswered
            words = {"datagrams": plural(count, "datagram"), "size": size_text(result)}
            yield loss.UNANSWERED.say(tests([number]), {"unanswered": count}, test=number, **words)


def size_text(result: MessageResult) -> str:
    """Return a message size as text: `1 byte`, `100 bytes` or `64K`."""
    return _size_words(result.size)


def _size_words(size: int) -> str:
    return format_bytes(size) if size % 1024 == 0 else plural(size, "byte")


def message_round_trips(results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield the findings on round trips that waited for a TCP timer, then a finding on round trips with two peaks."""
    for result in results:
        usual_us = _median_us(result)
        for (low_ns, high_ns), name in ((_DELAYED_NS, "40 ms"), (_TIMEOUT_NS, "200 ms")):
            count = count_between(result.round_trips, low_ns, high_ns)
            if count and usual_us is not None and usual_us * 1e3 < _USUAL_SHARE * low_ns:
                number, (cause, off) = result.cell.number, _cause(result, name)
                words = {"trips": plural(count, "round trip"), "size": format_bytes(result.size), "time": name}
                found = {"round_trips": count}
                yield latency.WAIT.advising(off).say(tests([number]), found, test=number, cause=cause, **words)
    if peaked := [(result, peaks) for result in results if len(peaks := peaks_ns(result.round_trips)) > 1]:
        widest, ends_ns = max(peaked, key=lambda one: one[1][-1] / one[1][0])
        low, high = (time_text(float(f"{ends_ns[end] / 1000:.2g}")) for end in (0, -1))
        polled = any(result.cell[BUSY_POLL] is not None or not BUSY_POLL.takes(result.cell.kind) for result in results)
        numbers = list(dict.fromkeys(result.cell.number for result, _ in peaked))
        which = numbers_text(numbers) if len(numbers) == 1 else plural(len(numbers), "test")
        worst = f"furthest apart in test {widest.cell.number}: " if len(numbers) > 1 else ""
        yield latency.PEAKS.advising(not polled).say(tests(numbers), tests=which, worst=worst, low=low, high=high)


def _cause(result: MessageResult, name: str) -> tuple[str, bool]:
    """Return the cause of a long round trip, and whether `nodelay: true` may help."""
    if name == "200 ms" and result.retransmits:
        return f"{plural(result.retransmits, 'retransmit')} after TCP's least timeout", False
    if name == "40 ms" and result.retransmits == 0 and result[NODELAY_IN_USE] is False:
        off = "TCP_NODELAY was off, so that the end of a message may wait for a delayed acknowledgement"
        return f"no retransmits, and {off}", True
    return "the cause is unknown", False


class SizeSeries(NamedTuple):
    """Results that differ in message size only; one line of a chart. `name` is empty if there is only one line."""

    name: str
    results: list[MessageResult]


def _lines(results: Sequence[MessageResult]) -> list[SizeSeries]:
    """Return one line per combination of the settings that vary besides the size, in the order of the results."""
    columns = (
        [str(result.stream) for result in results],
        [result.cell.transport.upper() for result in results],
        texts_that_vary([replace(result.cell, message_bytes=None) for result in results]),
    )
    rows = zip(results, *(column for column in columns if len({*column}) > 1), strict=True)
    named = group_by(rows, lambda row: ", ".join(row[1:]))
    return [
        SizeSeries(name, sorted((row[0] for row in own), key=lambda result: result.size)) for name, own in named.items()
    ]


def message_chart(drawn: Sequence[SizeSeries], *, trips: bool, again: Collection[int] = frozenset()) -> Chart | None:
    """Return the chart of round trips or throughput by message size; None if fewer than two sizes have a value.

    A ring marks the results of tests that were measured again, with the numbers `again`.
    """
    unit = "µs" if trips else "MB/s"
    marks: list[Mark] = []
    known: list[tuple[float, float]] = []
    for line, colour in zip(drawn, stream_colours(len(drawn)), strict=True):
        values = [(each, _median_us(each) if trips else _throughput_mb(each)) for each in line.results]
        points = tuple((each.size, value) for each, value in values if value is not None)
        name = line.name or ("p50" if trips else "throughput")
        if trips:
            ends = [(each.size, low, each[figures.ROUND_TRIP_P99]) for each, low in values]
            band = tuple((size, low, high) for size, low, high in ends if low is not None and high is not None)
            marks.append(Band(band, colour, name=name))
            upper = tuple((size, high) for size, _, high in band)
            marks.append(Drawn(upper, colour, 0.6, name=f"{line.name} p99".strip()))
        else:
            ceilings = tuple((each.size, divide(each.ceiling_bps, 8e6)) for each, value in values if value is not None)
            marks.append(Drawn(ceilings, "ceiling", width=1.2, dashed=True, name="ceiling"))
        marks.append(Drawn(points, colour, dots=True, name=name))
        rings = tuple((each.size, value) for each, value in values if value is not None and each.cell.number in again)
        marks += [Dots(rings, colour, 9, hollow=True)] if rings else []
        known += points
    if len({size for size, _ in known}) < 2:
        return None
    low, high = (end(known, key=lambda point: point[0]) for end in (min, max))
    label = (
        f"{'Median round trip, in a band up to p99,' if trips else 'Throughput'} against message size: "
        f"{rate_text(low[1])} {unit} at {format_bytes(int(low[0]))}, "
        f"{rate_text(high[1])} {unit} at {format_bytes(int(high[0]))}"
    )
    across = Axis("bytes per message", kind="log2", ticks=12, labels="bytes")
    up = Axis("round trip [µs]", kind="log10", ticks=7) if trips else Axis("MB/s", 0, ticks=6)
    captions = ["The line is the median (p50); the band reaches up to p99."] if trips else []
    captions += ["A ring: measured again, all repetitions together."] if again else []
    caption = " ".join(captions)
    return Chart(plot(WIDE, _HEIGHT, across, up, tuple(marks)), label, caption)


FILES: Final = "files"
_FILE_METHOD: Final = (
    "The sender reads its file in blocks of 64 KiB; before, it wrote the file to disk and dropped it from memory. The "
    "receiver writes as it receives, and sends one byte when it has written all. Elapsed: from the first send to that "
    "byte, on the sender's clock. Sync: the time after that until the data were safe on the receiver's disk."
)


def file_part(view: RunView) -> Part:
    """Return the report part on file transfers; `view` has only these."""
    asked = [SIZE_COLUMN, requested.requested_column(READ, "Read").of, requested.requested_column(WRITE, "Write").of]
    derived: list[ResultColumn] = [
        number_column("Throughput", "MB/s", _throughput_mb, to_decimals(1), "derived", -1),
        number_column("Ceiling", "MB/s", _ceiling_mb, to_decimals(1), "derived"),
        EFFICIENCY_COLUMN,
        share("Reading", itemgetter(figures.READ_SHARE)),
        share("Writing", itemgetter(figures.WRITE_SHARE)),
        time("Sync", itemgetter(figures.SYNC)),
    ]
    return Part(
        findings=tuple(_file_findings(view)),
        results=message_table(view.messages, asked, derived),
        picture=_file_bars(view.messages),
        method=(_FILE_METHOD,),
    )


def _file_bars(results: MessageResults) -> Charts | None:
    rates = [(result, rate) for result in results if (rate := _throughput_mb(result))]
    sized = len({result.size for result, _ in rates}) > 1
    bars = [
        Bar(
            result.cell.number,
            f"{size_words(result.size)}, {_kind(result)}" if sized else _kind(result),
            (Estimate(rate),),
            (f"{rate:.1f}",),
            _ceiling_mb(result),
        )
        for result, rate in rates
    ]
    return bars_chart(bars, f"Throughput of {plural(len(bars), 'transfer')}", unit="MB/s")


def _throughput_mb(result: MessageResult) -> float | None:
    return divide(result.bytes_per_s, 1e6)


def _ceiling_mb(result: MessageResult) -> float | None:
    return divide(ceiling_bytes(result), 1e6)


def _file_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings on file transfers, first the main result."""
    counted = [result for result in view.messages if result.bytes_per_s]
    if counted and not view.meshes:
        yield from _file_answer(counted)
    yield from excess_findings(view.info, counted)


def _file_answer(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    size = max(result.size for result in counted)
    largest = [result for result in counted if result.size == size]
    best = max(largest, key=lambda result: result.bytes_per_s or 0.0)
    rest = ", ".join(f"{_kind(result)} {_megabytes(result)}" for result in largest if result is not best)
    text = f"{upper_first(_kind(best))} {_megabytes(best)} MB/s{_of_ceiling(best)}{rest and f', {rest}'}"
    subject, brief = tests([best.cell.number]), f"{_kind(best)} {_megabytes(best)} MB/s"
    numbers = {"throughput_bytes_per_s": best.bytes_per_s, "efficiency": best.efficiency}
    fastest = Statement(text, largest, lambda result: (result.bytes_per_s or 0.0) <= (best.bytes_per_s or 0.0))
    yield Finding("file-throughput", text, Weight.ANSWER, Severity.NOTE, subject, numbers, None, brief, (fastest,))
    rates = {(result.cell[READ], result.cell[WRITE]): result.bytes_per_s or 0.0 for result in largest}
    stream = rates.get(("memory", "memory"))
    for result in largest:
        if result is not best:
            beside = f", {100 * (result.bytes_per_s or 0) / stream:.0f} % of memory to memory" if stream else ""
            words = {"files": _kind(result).capitalize(), "rate": _megabytes(result), "disks": _disks(result)}
            yield goodput.FILE_THROUGHPUT_OTHER.say(tests([result.cell.number]), beside=beside, **words)


def _kind(result: MessageResult) -> str:
    return f"{result.cell[READ]} to {result.cell[WRITE]}"


def _disks(result: MessageResult) -> str:
    parts = [
        f"{name} the file took {100 * taken:.0f} % of the time"
        for name, taken in (("reading", result[figures.READ_SHARE]), ("writing", result[figures.WRITE_SHARE]))
        if taken is not None
    ]
    return f"; {' and '.join(parts)}" if parts else ""


def _megabytes(result: MessageResult) -> str:
    return f"{(result.bytes_per_s or 0.0) / 1e6:.1f}"
