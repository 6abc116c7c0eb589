"""Import results that users measured with iperf3, from its JSON (`-J`), as the tests of a run.

A client's report has its own samples and the totals of the server. A server's report has only its own samples. Values
that the JSON does not have are None. Versions: iperf3 3.1 to 3.21.
"""

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from pydantic import ValidationError

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.base.version import __version__
from rigctl.measure.iperf3 import (
    MOST_MESSAGE,
    EndOfStream,
    Exchange,
    Interval,
    ProcessReport,
    Total,
    contradicting,
    cut_sender,
    flows_of_pair,
    lost_datagrams,
    receivers_contradict,
)
from rigctl.model.contract import invalid_reason
from rigctl.model.window import CommonWindow, cut_to_window, median_goodput_bps
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Facts,
    Flow,
    Link,
    Pair,
    Repetition,
    RunPlan,
    Side,
    Status,
    TcpInfo,
)
from rigctl.rig.fields import is_address
from rigctl.settings import CONGESTION, DSCP, MSS, RATE, WINDOW, Settings
from rigctl.settings.kinds import IPERF3
from rigctl.settings.sockets import mark_name
from rigctl.settings.traffic import UNLIMITED

_BEGIN_NS: Final = 10**9  # start of every test on an arbitrary clock, as iperf3 reports only whole seconds
_MOST_NAME: Final = 64
_NOTHING: Final = "Nothing was imported"
_MOST_QUOTE: Final = 60
_CONTRADICTION: Final = (
    "{file}: the receiver's bytes are not those of the datagrams that it counted, as with --skip-rx-copy of iperf3 "
    "3.19 to 3.21. Goodput and loss are unknown."
)
_OBJECT: Final = re.compile(r"^[ \t]*\{(?=\s*[\"}])", re.MULTILINE)
"""Matches the start of a JSON object in a line; a brace that no quoted name follows is text: `{host-a} starts`."""
_NEXT: Final = re.compile(r"[\s,\[]*\{(?=\s*[\"}])")
_ANYWHERE: Final = re.compile(r"\{(?=\s*[\"}])")
_REPORT: Final = re.compile(r"\{(?=\s*\"(?:start|title|extra_data)\")")
_C_NAN: Final = re.compile(r"(?<=[:\s])-?(?:nan(?:\(\w+\))?|inf)(?=[\s,}\]])")
"""Matches nan and inf as C prints them, on Windows -nan(ind); JSON allows neither."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report in a file. `place` is its name in messages (file and line)."""

    place: str
    report: ProcessReport

    @property
    def client(self) -> bool:
        return self.report.start.connecting_to is not None

    @property
    def addresses(self) -> tuple[str, str]:
        """Return the addresses of the client and the server."""
        end = self.report.start.connected[0]
        ends = [_plain(end.local_host), _plain(end.remote_host)]
        return (ends[0], ends[1]) if self.client else (ends[1], ends[0])


@dataclass(frozen=True, slots=True)
class RunFromFiles:
    plan: RunPlan
    repetitions: tuple[Repetition, ...]
    places: tuple[str, ...]  # file and line of the reports of each repetition
    facts: Mapping[str, Facts]
    versions: Mapping[str, str]

    @property
    def started_at(self) -> float:
        return min(one.started_at for one in self.repetitions)

    @property
    def ended_at(self) -> float:
        return max(one.started_at + one.wall_s for one in self.repetitions)


def reports_of(place: str, content: bytes) -> list[ReportFile]:
    """Return the reports in a file, which may have text around reports. Raise `InputError` if there is no report.

    Programs that start iperf3 may add messages and lines, and PowerShell writes UTF-16. Events of --json-stream are
    passed over if the report of the same test follows, as --json-stream-full-output prints it.
    """
    text, at, found = _text(content), 0, []
    streamed: str | None = None  # place of a test's first event whose report has not come yet
    while (begin := _object_at(text, at)) is not None:
        value, at = _value(place, text, begin)
        line = text.count("\n", 0, begin) + 1
        where = place if line == 1 else f"{place}:{line}"
        if not isinstance(value, dict) or "event" not in value:
            found.append(_report_file(where, value))
            streamed = None
        elif streamed is None:
            streamed = where
        elif value["event"] == "start":
            break
    if streamed is not None:
        what = "is from --json-stream, without a report. Give iperf3 --json-stream-full-output, or -J alone"
        raise InputError(f"{streamed}: {what}. {_NOTHING}")
    if not found:
        first = next((line.strip() for line in text.splitlines() if line.strip()), None)
        is_what = "is empty" if first is None else f"has no JSON. It begins with {printable(first[:_MOST_QUOTE])!r}"
        raise InputError(f"{place}: {is_what}. rigctl reads what iperf3 prints with -J. {_NOTHING}")
    return found


def _text(content: bytes) -> str:
    """Return the text of a file in UTF-8 or UTF-16, as its first two bytes show; invalid bytes become U+FFFD."""
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return content.decode("utf-16", "replace")
    return content.decode({0: "utf-16-be", 1: "utf-16-le"}.get(content[:2].find(b"\0"), "utf-8-sig"), "replace")


def _object_at(text: str, at: int) -> int | None:
    """Return the index of the next JSON object from `at` on, or None. After other text, it starts a line or report."""
    match = _NEXT.match(text, at)
    if match is None:
        found = [match for each in (_OBJECT, _REPORT) if (match := each.search(text, at)) is not None]
        match = min(found, key=re.Match.end, default=None) or (_ANYWHERE.search(text) if at == 0 else None)
    return None if match is None else match.end() - 1


def _value(place: str, text: str, begin: int) -> tuple[object, int]:
    """Return the JSON value at index `begin`, and the index of its end. Raise `InputError` for invalid JSON."""
    try:
        return json.JSONDecoder().raw_decode(text, begin)
    except json.JSONDecodeError as error:
        repaired = _C_NAN.sub(lambda token: "NaN".rjust(len(token[0])), text)  # padded, to keep the error's column
        if repaired != text:
            return _value(place, repaired, begin)
        raise InputError(f"{place}:{error.lineno}:{error.colno}: is no JSON: {error.msg}. {_NOTHING}") from None
    except (RecursionError, ValueError):
        line = text.count("\n", 0, begin) + 1
        raise InputError(f"{place}:{line}: is JSON that is nested too deep or too large. {_NOTHING}") from None


def _report_file(place: str, value: object) -> ReportFile:
    try:
        report = ProcessReport.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"])) or "the document"
        raise InputError(f"{place}: is no report of iperf3: {printable(at)}: {first['msg']}. {_NOTHING}") from None
    if why := _reason_to_refuse(report):
        raise InputError(f"{place}: {why}. {_NOTHING}")
    own = [[sample for sample in interval.streams if not sample.omitted] for interval in report.intervals]
    kept = [Interval(streams=samples) for samples in own if samples]
    return ReportFile(place, report.model_copy(update={"intervals": kept}))


def _reason_to_refuse(report: ProcessReport) -> str | None:
    """Return why rigctl cannot import the test of a report; None if it can."""
    start, test = report.start, report.start.test_start
    if report.error is not None:
        return f"the test failed: {printable(report.error[:MOST_MESSAGE])}"
    if test is None or start.timestamp is None or not start.connected or not report.end.streams:
        missing = "start.test_start, start.timestamp, start.connected, end.streams"
        return f"is no report of a whole test of iperf3. It lacks one of {missing}"
    reasons = {
        "tells neither by connecting_to nor by accepted_connection whether a client or a server wrote it": (
            (start.connecting_to is None) == (start.accepted_connection is None)
        ),
        "has a connection without local_host and remote_host": not all(
            end.local_host and end.remote_host for end in start.connected
        ),
        f"is a test of {printable(test.protocol[:MOST_MESSAGE])}; rigctl imports only TCP and UDP": (
            test.protocol not in ("TCP", "UDP")
        ),
        "is a test of a number of bytes or blocks (-n, -k); rigctl imports only tests of a duration (-t)": (
            bool(test.bytes or test.blocks or not test.duration)
        ),
        "has no interval after the omitted start (-O)": all(
            sample.omitted for interval in report.intervals for sample in interval.streams
        ),
    }
    return next((why for why, holds in reasons.items() if holds), None)


def import_reports(taken: Sequence[ReportFile], nodes: Mapping[str, str]) -> RunFromFiles:
    """Return the run of these reports. Reports with the same settings and pair are repetitions of one test.

    The reports of both ends of a test have the same cookie and are joined. `nodes` maps addresses to names.
    """
    names = _names(taken, nodes)
    cells: dict[Cell, int] = {}
    repetitions, places = [], []
    notes = dict[str, None]()
    for both in sorted(_by_test(taken), key=_start_of_both):
        cell = _cell(both, names)
        cells[cell] = cells.get(cell, 0) + 1
        number = list(cells).index(cell) + 1
        repetitions.append(_repetition(replace(cell, number=number), cells[cell], both))
        notes |= dict.fromkeys(
            _CONTRADICTION.format(file=one.place.rpartition("/")[2]) for one in both if _contradicts(one, cell)
        )
        places.append(" and ".join(one.place for one in both))
    numbered = tuple(replace(cell, number=number) for number, cell in enumerate(cells, 1))
    versions = sorted({printable(one.report.start.version.removeprefix("iperf ")[:_MOST_NAME]) for one in taken})
    plan = RunPlan(
        title="Imported from iperf3",
        notes="\n".join(notes),
        scenario_name=IPERF3,
        scenario_yaml="",
        rig_name="imported",
        rig_yaml="",
        overrides=(),
        repeat=max(cells.values()),
        cells=numbered,
        links=dict.fromkeys((node for cell in numbered for node in cell.nodes), Link(None, None)),
        ip_version=6 if any(":" in address for one in taken for address in one.addresses) else 4,
    )
    facts = {names[address]: known for one in taken for address, known in [_facts(one)]}
    return RunFromFiles(
        plan, tuple(repetitions), tuple(places), facts, {"rigctl": __version__, IPERF3: ", ".join(versions)}
    )


def _contradicts(one: ReportFile, cell: Cell) -> bool:
    if cell.transport == "tcp":
        return False
    sent = {sample.socket for interval in one.report.intervals for sample in interval.streams if sample.sender}
    at_server = [end.udp for end in one.report.end.streams if end.udp is not None and end.udp.socket in sent]
    of_totals = one.client and bool(at_server) and _bytes_contradict(one.report, at_server, cell)
    return of_totals or receivers_contradict(one.report, cell)


def _by_test(taken: Sequence[ReportFile]) -> list[list[ReportFile]]:
    """Return the one or two reports of each test, the client's first. Raise `InputError` for a repeated report."""
    tests: dict[str, list[ReportFile]] = {}
    for number, one in enumerate(taken):
        own = tests.setdefault(one.report.start.cookie or f"#{number}", [])
        for other in own:
            if other.client == one.client:
                raise InputError(f"{one.place}: is the same test as {other.place}. Import only one of them. {_NOTHING}")
        own.append(one)
    return [sorted(own, key=lambda one: not one.client) for own in tests.values()]


def _plain(address: str) -> str:
    return printable(address.removeprefix("::ffff:"))[:_MOST_NAME]


def _names(taken: Sequence[ReportFile], given: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each address: the user's, else a reported name that no other address has, else the address."""
    reported: dict[str, str] = {}
    for one in taken:
        client, server = one.addresses
        words = one.report.start.system_info.split()
        if len(words) > 1:
            reported.setdefault(client if one.client else server, printable(words[1])[:_MOST_NAME])
        if (to := one.report.start.connecting_to) is not None and not is_address(to.host):
            reported[server] = printable(to.host)[:_MOST_NAME]
    every = dict.fromkeys(address for one in taken for address in one.addresses)
    known = {address: given.get(address) or reported.get(address) or address for address in every}
    counts = list(known.values())
    return {
        address: name if given.get(address) or counts.count(name) == 1 else address for address, name in known.items()
    }


def _facts(one: ReportFile) -> tuple[str, Facts]:
    """Return the address and the host facts of the node that wrote a report."""
    address = one.addresses[0 if one.client else 1]
    words = one.report.start.system_info.split()
    kernel = printable(f"{words[0]} {words[2]} {words[-1]}") if len(words) > 3 else None
    return address, {"data_address": address, "kernel": kernel}


def _start_of_both(both: Sequence[ReportFile]) -> float:
    stamp = both[0].report.start.timestamp
    return float(stamp.timesecs) if stamp is not None else 0.0


def _cell(both: Sequence[ReportFile], names: Mapping[str, str]) -> Cell:
    """Return the settings of a test. iperf3 reports no requested congestion control, so the effective one is used."""
    start = both[0].report.start
    test = start.test_start
    assert test is not None
    udp = test.protocol == "UDP"
    sends = {sample.sender for interval in both[0].report.intervals for sample in interval.streams}
    direction = Direction.REVERSE if test.reverse else Direction.FORWARD
    rates = [test.target_bitrate, test.fqrate, start.target_bitrate, start.fq_rate]
    rate = next((rate for rate in rates if rate), UNLIMITED if udp and 0 in rates else None)
    asked = {
        WINDOW: start.sock_bufsize or None,
        MSS: start.tcp_mss,
        RATE: rate,
        DSCP: mark_name(test.tos >> 2) if test.tos else None,
        CONGESTION: None if udp else next(filter(None, (one.report.end.sender_tcp_congestion for one in both)), None),
    }
    client, server = both[0].addresses
    return Cell(
        number=0,
        test="udp" if udp else "tcp",
        pairs=(Pair(names[client], names[server]),),
        duration_s=float(test.omit + test.duration),
        omit_s=float(test.omit),
        parallel=test.num_streams,
        direction=Direction.BOTH if test.bidir or len(sends) > 1 else direction,
        transport="udp" if udp else "tcp",
        message_bytes=test.blksize if udp else None,
        settings=Settings({setting: value for setting, value in asked.items() if value is not None}),
        engine=IPERF3,
    )


def _repetition(cell: Cell, number: int, both: Sequence[ReportFile]) -> Repetition:
    """Return a repetition. As in iperf3's totals, its times count from the end of the omitted start (`-O`)."""
    report = both[0].report
    other = both[1].report if len(both) > 1 else ProcessReport()
    measured = tuple(flows_of_pair(Exchange(cell.pairs[0], report, other, _BEGIN_NS), cell))
    if not both[0].client:
        measured = tuple(map(_turn, measured))
    elif len(both) == 1:
        measured = _with_totals(measured, report, cell)
    window = _window(cell, measured)
    reason = invalid_reason(cell, window, (), 0.0, skew_known=False)
    received = [flow.receiver for flow in measured]
    sampled = window is not None and all(side and len(side.series.columns.get("t_ns", ())) > 1 for side in received)
    return Repetition(
        cell=cell.number,
        repetition=number,
        attempt=1,
        status=Status.OK if reason is None else Status.INVALID,
        reason=reason,
        started_at=_start_of_both(both),
        wall_s=cell.duration_s,
        window_start_ns=window.start_ns if window else None,
        window_end_ns=window.end_ns if window else None,
        goodput_median_bps=median_goodput_bps(measured, window, _interval_s(report)) if window and sampled else None,
        flows=tuple(cut_to_window(flow, window) for flow in measured) if window else measured,
    )


def _turn(flow: Flow) -> Flow:
    """Reverse the direction of a flow, which was read as if the server that wrote the report were the client."""
    return replace(flow, direction=Direction.REVERSE if flow.direction is Direction.FORWARD else Direction.FORWARD)


def _with_totals(measured: Sequence[Flow], report: ProcessReport, cell: Cell) -> tuple[Flow, ...]:
    """Return the flows of a client's report; the server's ends, which have no samples there, get its totals."""
    totals = {one.socket: end for end in report.end.streams for one in (end.sender, end.receiver, end.udp) if one}
    ends = [totals.get(opened.socket, EndOfStream()) for opened in report.start.connected]
    pairs = [*zip(measured, ends, strict=True)]
    if cell.transport == "tcp":
        return tuple(
            replace(
                flow,
                sender=flow.sender or _total_of(end.sender),
                receiver=flow.receiver or _total_of(end.receiver),
            )
            for flow, end in pairs
        )
    at_server = [end.udp for flow, end in pairs if flow.direction is Direction.FORWARD and end.udp is not None]
    return tuple(_with_datagrams(flow, end.udp, at_server, report, cell) for flow, end in pairs)


def _with_datagrams(
    flow: Flow, end: Total | None, at_server: Sequence[Total], report: ProcessReport, cell: Cell
) -> Flow:
    """Return a UDP flow with the server's end, made of the totals of the flow and of all flows that went there."""
    if flow.direction is Direction.FORWARD:
        receiver = _datagrams_received(end, at_server, report, cell)
        return replace(
            flow, sender=cut_sender(flow.sender, receiver, end.lost_packets if end else None), receiver=receiver
        )
    sender = _datagrams_sent(end, flow.receiver)
    return replace(flow, sender=cut_sender(sender, flow.receiver, lost_datagrams(report, end.socket) if end else None))


def _total_of(total: Total | None) -> Side | None:
    """Return a `Side` with only the total; None if the total is unknown (iperf3 prints 0 bytes)."""
    if total is None or not total.bytes or not total.end:
        return None
    return Side(total.bytes, _BEGIN_NS, _BEGIN_NS + round(total.end * 1e9), tcp=TcpInfo(retransmits=total.retransmits))


def _datagrams_sent(total: Total | None, receiver: Side | None) -> Side | None:
    """Return the `Side` of a server that sent datagrams; None if the total is unknown, or below the received bytes."""
    side = _total_of(total)
    if side is None or total is None or total.packets is None or (receiver is not None and side.bytes < receiver.bytes):
        return None
    return replace(side, datagrams=Datagrams(total.packets))


def _datagrams_received(
    end: Total | None, at_server: Sequence[Total], report: ProcessReport, cell: Cell
) -> Side | None:
    """Return the `Side` of a server that received datagrams; None if unknown, or if its counts contradict each other.

    Since iperf3 3.10 a client's report has the bytes that the server received from all flows together. Each flow gets
    a part in proportion to its datagrams that were not lost.
    """
    received, arrived = report.end.sum_received, sum(each.arrived for each in at_server)
    if end is None or received is None or not received.bytes or not received.end or not arrived:
        return None
    if _bytes_contradict(report, at_server, cell):
        return None
    count = round(received.bytes * end.arrived / arrived / (cell.message_bytes or 1))
    counted = Datagrams(count, reordered=end.out_of_order, jitter_ns=end.jitter_ns)
    end_ns = _BEGIN_NS + round(received.end * 1e9)
    return Side(count * (cell.message_bytes or 1), _BEGIN_NS, end_ns, datagrams=counted)


def _bytes_contradict(report: ProcessReport, at_server: Sequence[Total], cell: Cell) -> bool:
    """Tell whether the server's bytes in a client's report cannot be those of the datagrams that it counted."""
    received, lost = report.end.sum_received, sum(each.lost_packets or 0 for each in at_server)
    if received is None:
        return False
    seen = lost + 1 if received.packets is None else received.packets
    return contradicting(received.bytes, seen, lost, cell)


def _window(cell: Cell, measured: Sequence[Flow]) -> CommonWindow | None:
    """Return the time from the start until the first flow ends, at its receiver if that is known; None if unknown."""
    sides = [flow.receiver or flow.sender for flow in measured]
    lasts = [side.last_byte_ns for side in sides if side is not None and side.last_byte_ns is not None]
    if not lasts or len(lasts) < len(measured):
        return None
    end_ns = min(*lasts, _BEGIN_NS + round((cell.duration_s - cell.omit_s) * 1e9))
    return CommonWindow(_BEGIN_NS, end_ns, 0) if end_ns > _BEGIN_NS else None


def _interval_s(report: ProcessReport) -> float:
    first = [interval.streams[0] for interval in report.intervals]
    return max(0.001, median(sample.end - sample.start for sample in first))
