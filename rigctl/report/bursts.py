"""The report part on tests that send bursts: the buffer of a port, the evidence for it, and loss over burst length."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.units import size_words
from rigctl.base.values import divide, group_by, least, least_of_all, most, total, total_of_known
from rigctl.figures import Figure
from rigctl.figures import bursts as figures
from rigctl.figures.counters import SENDER_PAUSED
from rigctl.figures.datagrams import RECEIVER_DROPS
from rigctl.findings import Finding, Statement, Subject, Weight, tests
from rigctl.findings import loss as said
from rigctl.findings.repetitions import exclusion_texts, findings_on_exclusions
from rigctl.findings.text import (
    MOST_NAMED,
    count_text,
    join_list,
    numbers_text,
    plural,
    rate_text,
    some,
    span,
    upper_first,
)
from rigctl.limits.links import link_rate_bps
from rigctl.model.bursts import drained_ms
from rigctl.model.frames import Packet
from rigctl.records import Cell, RunInfo, Status
from rigctl.report.blocks import Chart, Charts, Column, Entry, Key, Part, Table
from rigctl.report.charts.plot import MOST_COLOURS, WIDE, Axis, Line, plot, stream_colours
from rigctl.report.tables import requested
from rigctl.report.tables.columns import (
    ColumnOf,
    RowHead,
    TextOf,
    count_texts,
    entry_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
    to_loss,
)
from rigctl.results.summary import CellSummary, Results
from rigctl.settings import INTERVAL, ITERATIONS, LENGTH, SIZE

SECTION: Final = "bursts"
_HEIGHT: Final = 220.0
_FILLED: Final = 0.9
"""Senders that come to this share of their links send back to back."""
_TOGETHER: Final = 0.5
"""Bursts to several ports are to come at once for at least this share of their time."""
_ROUGH: Final = 0.1
"""A buffer with a larger error than this share of it is stated by its lower bound."""
_SENT: Final = 0.9
"""A test with a smaller share of its bursts has a sender that was late."""
_METHOD: Final = (
    "Each flow sends its burst at once, then waits until the port has drained. Arrival: from the first datagram to the "
    "last as the senders' kernels passed them to the card, at most the rate of their links. Drain: likewise at the "
    "receiver, of bursts with loss.",
    "A burst with loss filled the buffer: frames that arrived, less those that left the port while the burst came. "
    "The error is the number of these, at least one frame. The port's shaper and the frame that it is sending count as "
    "buffer.",
)


@dataclass(frozen=True)
class _Length:
    """The results of bursts of one length: of a test, or of a trial of a search for the longest."""

    cell: Cell
    results: Results


@dataclass(frozen=True)
class _Curve:
    """Results of bursts that differ only in their length, the shortest first."""

    cells: Sequence[_Length]

    @property
    def lossy(self) -> list[_Length]:
        return [cell for cell in self.cells if _shows_buffer(cell)]

    @property
    def best(self) -> _Length | None:
        """Return the bursts that show the buffer with the least error; None if none shows it."""
        return min(self.lossy, key=lambda cell: cell.results[figures.BUFFER_ERROR] or 0.0, default=None)

    @property
    def largest(self) -> _Length | None:
        """Return the bursts without loss that show most of the buffer; None if none shows any."""
        known = [cell for cell in self.cells if cell.results[figures.BUFFER_LEAST] is not None]
        return max(known, key=lambda cell: cell.results[figures.BUFFER_LEAST] or 0.0, default=None)

    @property
    def longest(self) -> int | None:
        """Return the datagrams of the longest burst without loss, below the shortest with loss; None if none."""
        first = next((at for at, cell in enumerate(self.cells) if _loss(cell)), len(self.cells))
        return most(cell.results[figures.BURST_LENGTH] for cell in self.cells[:first] if _loss(cell) == 0)

    @property
    def shortest_lossy(self) -> int | None:
        return least(cell.results[figures.BURST_LENGTH] for cell in self.cells if _loss(cell))


def part(view: RunView) -> Part:
    """Return the report part on tests that send bursts; `view` has only these."""
    curves = _curves(view)
    findings = [*_answer(view.info, curves), *_findings(view.info, view.cells), *_evidence(view.info, curves)]
    return Part(
        findings=(*findings, *findings_on_exclusions(view.cells)),
        results=_table(view, curves),
        picture=_picture(curves),
        method=_METHOD,
    )


def _loss(cell: CellSummary | _Length) -> float | None:
    return cell.results[figures.BURST_LOSS]


def _length(cell: CellSummary | _Length) -> float:
    return cell.results[figures.BURST_LENGTH] or 0


def _curves(view: RunView) -> list[_Curve]:
    """Return what was measured by all settings but the length, the largest datagrams first."""
    lengths = [each for cell in view.cells if cell.counted for each in _lengths(view, cell)]
    alike = group_by(lengths, lambda each: _without_length(each.cell))
    ordered = sorted(alike.items(), key=lambda each: (-(each[0].message_bytes or 0), len(each[0].pairs)))
    return [_Curve(sorted(own, key=_length)) for _, own in ordered]


def _lengths(view: RunView, cell: CellSummary) -> Iterator[_Length]:
    """Yield the results of a test; of a search those of each valid trial."""
    if cell.cell.number not in view.searches:
        yield _Length(cell.cell, cell.results)
        return
    for one in view.stored.each:
        if one.cell.number == cell.cell.number and one.repetition.status is Status.OK:
            yield _Length(cell.cell, Results([one.rows[None]]))


def _without_length(cell: Cell) -> Cell:
    free = {LENGTH: None, INTERVAL: None, ITERATIONS: None}
    return replace(cell, number=0, group=None, duration_s=0.0, capture=False, settings=cell.settings | free)


def _frame(info: RunInfo, cell: _Length) -> int:
    return Packet("udp", info.ip_version).frame_bytes(cell.cell.message_bytes or 0)


def _ports(cell: Cell) -> str:
    """Return the ports that the bursts of a test filled: `port to n2`, `2 ports at once (to n2 and n4)`."""
    receivers = list(dict.fromkeys(stream.receiver for stream in cell.streams))
    if len(receivers) == 1:
        return f"port to {receivers[0]}"
    return f"{len(receivers)} ports at once (to {some(receivers, MOST_NAMED)})"


def _answer(info: RunInfo, curves: Sequence[_Curve]) -> Iterator[Finding]:
    """Yield the answer: the buffer by size of datagrams and number of busy ports; at least that much if none lost."""
    shown = [(curve, curve.best) for curve in curves if curve.best is not None]
    if shown:
        first, best = shown[0]
        frames = best.results[figures.BUFFER_FRAMES] or 0.0
        by_size = group_by((each for _, each in shown), lambda each: each.cell.message_bytes).values()
        texts = [text for own in by_size for text in _buffer_texts(info, own)]
        more = "" if first.longest is None else f"; bursts of up to {first.longest} lose nothing"
        text = f"{upper_first(_ports(best.cell))}: a buffer of {'; '.join(_few(texts))}{'' if len(shown) > 1 else more}"
        numbers = {"buffer_frames": frames, "buffer_bytes": best.results[figures.BUFFER]}
        brief = f"buffer {_brief_size(info, first, best)}"
        rows, known = [each for _, each in shown], [cell for curve in curves for cell in curve.cells]
        statements = (Statement("a buffer", [cell for cell in known if _shows_buffer(cell)], _shows_buffer, known),)
        subject = tests(cell.cell.number for cell in rows)
        yield Finding(
            "bursts", text, Weight.ANSWER, subject=subject, numbers=numbers, brief=brief, statements=statements
        )
        return
    at_least = [cell for curve in curves if (cell := curve.largest) is not None]
    if at_least:
        cell = max(at_least, key=lambda each: (each.results[figures.BUFFER_LEAST] or 0.0) * _frame(info, each))
        least = cell.results[figures.BUFFER_LEAST] or 0.0
        size = size_words(round(least * _frame(info, cell)))
        why = "as no burst lost a datagram (senders)"
        text = f"{upper_first(_ports(cell.cell))}: a buffer of ≥ {least:.1f} frames, {why}"
        numbers = {"buffer_least_frames": least}
        yield Finding(
            "bursts", text, Weight.ANSWER, subject=tests([cell.cell.number]), numbers=numbers, brief=f"buffer ≥ {size}"
        )


def _shows_buffer(cell: _Length) -> bool:
    return cell.results[figures.BUFFER_FRAMES] is not None


def _few(texts: Sequence[str]) -> list[str]:
    return [*texts[:MOST_NAMED], *([f"{len(texts) - MOST_NAMED} more"] if len(texts) > MOST_NAMED else [])]


def _size_text(info: RunInfo, cell: _Length) -> str:
    return f"{(cell.results[figures.BUFFER_FRAMES] or 0.0) * _frame(info, cell) / 1024:.1f} KiB"


def _brief_size(info: RunInfo, curve: _Curve, best: _Length) -> str:
    """Return the buffer in few words: where its error is large, what bursts without loss have shown, rounded down."""
    largest = curve.largest
    if largest is None or _value(best, figures.BUFFER_ERROR) <= _ROUGH * _value(best, figures.BUFFER_FRAMES):
        return _size_text(info, best)
    return f"≥ {math.floor(10 * _value(largest, figures.BUFFER_LEAST) * _frame(info, largest) / 1024) / 10} KiB"


def _buffer_texts(info: RunInfo, alike: Sequence[_Length]) -> Iterator[str]:
    """Yield the buffers for one size of datagrams; those with more busy ports only where they differ from the first.

    A text is as `88.1 ± 1.0 frames of 1518 bytes (130.6 KiB)`.
    """
    first, same = alike[0], []
    for cell in alike[1:]:
        off = abs(_value(cell, figures.BUFFER_FRAMES) - _value(first, figures.BUFFER_FRAMES))
        if off <= _value(cell, figures.BUFFER_ERROR) + _value(first, figures.BUFFER_ERROR):
            same.append(cell)
    also = f", the same with {join_list([str(_busy(cell)) for cell in same])} busy ports" if same else ""
    yield f"{_buffer_text(info, first)}{also}"
    for cell in alike[1:]:
        if cell not in same:
            yield f"{_buffer_text(info, cell)} with {_busy(cell)} busy ports"


def _value(cell: _Length, figure: Figure[float]) -> float:
    return cell.results[figure] or 0.0


def _busy(cell: _Length) -> int:
    """Return how many ports the bursts filled at once."""
    return len({stream.receiver for stream in cell.cell.streams})


def _buffer_text(info: RunInfo, cell: _Length) -> str:
    frames, error = _value(cell, figures.BUFFER_FRAMES), _value(cell, figures.BUFFER_ERROR)
    return f"{frames:.1f} ± {error:.1f} frames of {_frame(info, cell)} bytes ({_size_text(info, cell)})"


def _evidence(info: RunInfo, curves: Sequence[_Curve]) -> Iterator[Finding]:
    """Yield for each curve on what its buffer stands, or how much of the buffer bursts without loss have shown."""
    for curve in curves:
        best, largest = curve.best, curve.largest
        numbers = [cell.cell.number for cell in curve.cells]
        if best is not None:
            found = [cell.results[figures.BUFFER_FRAMES] or 0.0 for cell in curve.lossy]
            lengths = span(count_text(_length(cell)) for cell in (curve.lossy[0], curve.lossy[-1]))
            lossy = total_of_known(_lossy_count(cell) for cell in curve.lossy)
            error = best.results[figures.BUFFER_ERROR] or 0.0
            yield said.BUFFER_SHOWN.say(
                tests(numbers),
                {"buffer_frames": median(found), "buffer_error_frames": error},
                ports=upper_first(_ports(best.cell)),
                lossy=count_text(lossy),
                lengths=f"of {lengths} datagrams",
                span=span(f"{frames:.1f}" for frames in (min(found), max(found))),
                frame=_frame(info, best),
                error=f" (± {error:.1f} with the shortest)",
                longest=plural(curve.longest, "datagram") if curve.longest else "fewer than any tried",
                shortest=curve.shortest_lossy,
            )
            errors = [cell.results[figures.BUFFER_ERROR] or 0.0 for cell in curve.lossy]
            if max(found) - min(found) > 2 * max(errors):
                low, high = (f"{frames:.0f}" for frames in (min(found), max(found)))
                yield said.BUFFERS_DISAGREE.say(
                    tests(numbers), ports=upper_first(_ports(best.cell)), low=low, high=high
                )
        elif largest is not None:
            least = largest.results[figures.BUFFER_LEAST]
            yield said.BUFFER_AT_LEAST.say(
                tests(numbers),
                {"buffer_least_frames": least},
                ports=upper_first(_ports(largest.cell)),
                longest=plural(int(_length(largest)), "datagram"),
                size=largest.cell.message_bytes,
                least=f"{least or 0.0:.1f}",
                bytes=size_words(round((least or 0.0) * _frame(info, largest))),
            )


def _lossy_count(cell: _Length) -> int | None:
    sent, whole = cell.results[figures.BURSTS], cell.results[figures.BURSTS_LOSSLESS]
    return None if sent is None or whole is None else sent - whole


def _findings(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield what keeps tests from showing a buffer, and what else is to be known of their senders."""
    counted = [cell for cell in cells if cell.counted]
    paused = [cell for cell in counted if any(_pauses(cell))]
    full = [cell for cell in counted if any(stream[RECEIVER_DROPS] for stream in cell.streams)]
    if paused:
        yield said.BURSTS_PAUSED.say(_of(paused), tests=_names(paused))
    if full:
        yield said.BURSTS_SOCKET_FULL.say(_of(full), tests=_names(full))
    if untimed := [cell for cell in counted if cell.results[figures.ARRIVAL] is None and _length(cell) > 1]:
        yield said.BURSTS_UNTIMED.say(_of(untimed), tests=_names(untimed))
    blank = [cell for cell in counted if cell not in (*paused, *full) and _is_blank(cell) and _length(cell) > 1]
    if slow := [cell for cell in blank if cell.results[figures.ARRIVAL] and cell.results[figures.DRAIN]]:
        worst = max(slow, key=_length)
        yield said.BURSTS_NOT_FASTER.say(
            _of(slow),
            tests=_names(slow),
            arrival=rate_text(worst.results[figures.ARRIVAL]),
            drain=rate_text(worst.results[figures.DRAIN]),
        )
    if apart := [cell for cell in counted if _together_pct(cell) < 100 * _TOGETHER]:
        pcts = span(f"{of_all(map(_together_pct, apart)):.0f}" for of_all in (min, max))
        yield said.BURSTS_APART.say(_of(apart), tests=_names(apart), pct=pcts)
    if spaced := [(cell, mbps) for cell in counted if (mbps := _spaced_mbps(info, cell)) is not None]:
        cell, mbps = spaced[0]
        own = [each for each, _ in spaced]
        yield said.BURSTS_SPACED.say(
            _of(own), tests=_names(own), arrival=rate_text(cell.results[figures.ARRIVAL]), links=rate_text(mbps)
        )
    if late := [cell for cell in counted if (cell.results[figures.BURSTS] or 0) < _SENT * (_due(cell) or 0)]:
        sent = total_of_known(cell.results[figures.BURSTS] for cell in late)
        due = total_of_known(map(_due, late))
        yield said.BURSTS_LEFT_OUT.say(_of(late), tests=_names(late), sent=count_text(sent), due=count_text(due))


def _together_pct(cell: CellSummary) -> float:
    """Return the share of time in which bursts came to all ports at once; 100 if there is one port, or if unknown."""
    pct = cell.results[figures.BURSTS_TOGETHER]
    return 100.0 if pct is None else pct


def _of(cells: Sequence[CellSummary]) -> Subject:
    return tests(cell.cell.number for cell in cells)


def _names(cells: Sequence[CellSummary]) -> str:
    return numbers_text([cell.cell.number for cell in cells])


def _pauses(cell: CellSummary) -> Iterator[bool]:
    for stream in cell.streams:
        yield bool(stream[SENDER_PAUSED])


def _is_blank(cell: CellSummary) -> bool:
    return cell.results[figures.BUFFER_FRAMES] is None and cell.results[figures.BUFFER_LEAST] is None


def _due(cell: CellSummary) -> int | None:
    """Return how many bursts the valid repetitions of a test were to send to all its receivers."""
    length = cell.results[figures.BURST_LENGTH]
    if length is None:
        return None
    every_ms = drained_ms(replace(cell.cell, settings=cell.cell.settings | {LENGTH: length}))
    most_of_time = int(1000 * cell.cell.sending_s // every_ms)
    receivers = len({stream.receiver for stream in cell.cell.streams})
    return min(most_of_time, cell.cell[ITERATIONS] or most_of_time) * cell.counted * receivers


def _spaced_mbps(info: RunInfo, cell: CellSummary) -> float | None:
    """Return the rate of the senders' links together if bursts came clearly slower; None if not, or if unknown."""
    arrival = cell.results[figures.ARRIVAL]
    by_receiver = group_by(cell.cell.streams, lambda stream: stream.receiver).values()
    each = [total(link_rate_bps(info, node) for node in {stream.sender for stream in own}) for own in by_receiver]
    links_bps = least_of_all(each)
    if arrival is None or links_bps is None or arrival * 1e6 >= _FILLED * links_bps or not _loss(cell):
        return None
    return links_bps / 1e6


def _picture(curves: Sequence[_Curve]) -> Charts | None:
    """Return the chart of loss over burst length, a line for each size of datagrams and number of ports."""
    drawn = [(curve, points) for curve in curves if len(points := _points(curve)) > 1]
    if not drawn:
        return None
    colours = stream_colours(len(drawn))
    names = [_line_name(curve, [each for each, _ in drawn]) for curve, _ in drawn]
    marks = [
        Line(points, colour, dots=True, name=name or "loss")
        for (_, points), colour, name in zip(drawn, colours, names, strict=True)
    ]
    first = drawn[0][0]
    longest = f" Bursts of up to {first.longest} lose nothing." if first.longest else ""
    chart = Chart(
        plot(
            WIDE,
            _HEIGHT,
            Axis("datagrams of a burst", kind="log2", ticks=10),
            Axis("lost [%]", 0, ticks=5),
            tuple(marks),
        ),
        f"Loss against the length of a burst.{longest}",
        "Each dot is a test, or a trial of a search: the share of all datagrams of its bursts that did not arrive.",
    )
    keys = map(Key, names, colours) if 1 < len(names) <= MOST_COLOURS else ()
    return Charts((chart,), tuple(keys), wide=True)


def _points(curve: _Curve) -> tuple[tuple[float, float | None], ...]:
    return tuple((_length(cell), _loss(cell)) for cell in curve.cells if _length(cell) and _loss(cell) is not None)


def _line_name(curve: _Curve, curves: Sequence[_Curve]) -> str:
    """Return what tells a curve from the others: the size of datagrams, of pairs, or its first test."""
    parts = []
    cell = curve.cells[0].cell
    if len({each.cells[0].cell.message_bytes for each in curves}) > 1:
        parts.append(plural(cell.message_bytes or 0, "byte"))
    if len({len(each.cells[0].cell.pairs) for each in curves}) > 1:
        parts.append(plural(len(cell.pairs), "pair"))
    if cell.condition is not None and len({each.cells[0].cell.condition for each in curves}) > 1:
        parts.append(cell.condition)
    return ", ".join(parts) if parts or len(curves) == 1 else f"test {cell.number} …"


def _table(view: RunView, curves: Sequence[_Curve]) -> Table:
    """Return the table with a row for each test; that of a search has the buffer that its trials with loss show."""
    best = {curve.best.cell.number: curve.best for curve in curves if curve.best is not None}

    def buffer(cell: CellSummary) -> Results:
        own = best.get(cell.cell.number)
        return own.results if own is not None and cell.cell.number in view.searches else cell.results

    columns: list[ColumnOf[CellSummary]] = [
        requested.TEST_COLUMN.of,
        requested.CONDITION_COLUMN.of,
        entry_column(Column("To", "", "requested", words=True), _receivers),
        requested.varying_column(SIZE, "Datagram").of,
        *(setting.of for setting in requested.OF_ALL),
        requested.PLACEMENT_COLUMN.of,
        _measured("Length", "", figures.BURST_LENGTH, -1),
        _measured("Bursts", "", figures.BURSTS, 1),
        _measured("No loss", "", figures.BURSTS_LOSSLESS, 1),
        _measured("Lost", "%", figures.BURST_LOSS, 0, to_loss),
        _measured("Arrival", "Mbit/s", figures.ARRIVAL, 1, to_digits(3, 2)),
        _measured("Drain", "Mbit/s", figures.DRAIN, 1, to_digits(3, 2)),
        number_column("Buffer", "frames", lambda cell: buffer(cell)[figures.BUFFER_FRAMES], to_decimals(1), minor=-1),
        number_column("±", "frames", lambda cell: buffer(cell)[figures.BUFFER_ERROR], to_decimals(1)),
        number_column("Size", "KiB", lambda cell: divide(buffer(cell)[figures.BUFFER], 1024), to_decimals(1)),
        _measured("At least", "frames", figures.BUFFER_LEAST, 1, to_decimals(1)),
    ]
    return table_of(view.cells, columns, _head, label="Bursts")


def _measured(
    title: str, unit: str, figure: Figure[float] | Figure[int], minor: int = 0, text_of: TextOf = count_texts
) -> ColumnOf[CellSummary]:
    return number_column(title, unit, lambda cell: cell.results[figure], text_of, "measured", minor)


def _receivers(cell: CellSummary) -> Entry:
    names = list(dict.fromkeys(stream.receiver for stream in cell.cell.streams))
    senders = {stream.sender for stream in cell.cell.streams}
    text = some(names, MOST_NAMED)
    return Entry(text if len(senders) <= len(names) else f"{text} from {len(senders)}", text)


def _head(cell: CellSummary) -> RowHead:
    return RowHead(cell.cell.number, tuple(exclusion_texts(cell.exclusions)), cell.counted > 0)
