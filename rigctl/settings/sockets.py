"""Settings of sockets: what both ends request from their kernels, and the effective values."""

import re
from typing import Any, Final

from rigctl.base.units import format_bytes, kib_text, parse_bytes, size_words
from rigctl.settings.kinds import AGENT, BLAST, FILE, PINGPONG, REQUESTS, TCP
from rigctl.settings.setting import (
    DEFAULT,
    ONLY_FLOWS,
    CountedValue,
    DataColumn,
    Effective,
    Ends,
    OrderKey,
    Setting,
    Subflows,
    Title,
    as_column,
    default_or,
    flag,
    or_default,
    whole_number,
)
from rigctl.yamlfile.fields import FieldError, parse_between, parse_text, show_value

CONNECTIONS: Final = (TCP, PINGPONG, BLAST, FILE, REQUESTS)  # kinds of tests that use TCP connections
TIMESTAMPS_OPTION: Final = 12  # bytes that TCP timestamps (RFC 7323) take in every segment
MPTCP_ENABLED: Final = "net.mptcp.enabled"  # the sysctl that switches Multipath TCP on and off
MIN_WINDOW: Final = 1024
_MAX_WINDOW: Final = 1024**3
_MIN_MSS, _MAX_MSS = 88, 32767  # bounds of TCP_MAXSEG (linux/net/ipv4/tcp.c: TCP_MIN_MSS, MAX_TCP_WINDOW)
SIZE_RANGE_SCHEMA: Final = {
    "type": "string",
    "pattern": r"^\s*[0-9]+[kKmM]?\s*\.\.\s*[0-9]+[kKmM]?\s+(step|times)\s+[0-9]+[kKmM]?\s*$",
}
_WINDOW_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([bB]|[kKmM]([iI]?[bB])?)?\s*$"},
        SIZE_RANGE_SCHEMA,
        {"type": "integer", "minimum": MIN_WINDOW, "maximum": _MAX_WINDOW},
        {"const": DEFAULT},
    ]
}
_MOST_MARK: Final = 63
_MARKS: Final = {
    "BE": 0,  # best effort: RFC 2474
    "LE": 1,  # lower effort: RFC 8622
    **{f"CS{number}": 8 * number for number in range(8)},  # class selectors: RFC 2474
    **{f"AF{group}{drop}": 8 * group + 2 * drop for group in range(1, 5) for drop in range(1, 4)},  # assured: RFC 2597
    "VA": 44,  # voice admit: RFC 5865
    "EF": 46,  # expedited forwarding: RFC 3246
}
"""Maps names of marks (DSCP) to their numbers."""
_MARK_PATTERN: Final = "[0-5]?[0-9]|6[0-3]|[Ee][Ff]|[Vv][Aa]|[Bb][Ee]|[Ll][Ee]|[Cc][Ss][0-7]|[Aa][Ff][1-4][1-3]"
_MARK_NAMES: Final = {number: name for name, number in reversed(_MARKS.items())}
"""Maps numbers of marks (DSCP) to their names; 0 is BE, not CS0."""
_CONGESTION_NAME: Final = re.compile(r"[a-z0-9_-]{1,15}", re.ASCII)


def _window(name: str, value: object) -> int:
    return parse_between(name, value, parse_bytes, (MIN_WINDOW, _MAX_WINDOW), "1K to 1024M", "64K")


def _window_of_side(side: Any) -> int | None:  # noqa: ANN401 — a `Side` of rigctl.records, which imports this module
    """Return the window of a side in bytes: the buffer, of which Linux reports twice the size. None if unknown."""
    granted: int | None = side.sndbuf_bytes if side.sending else side.rcvbuf_bytes
    return granted // 2 if granted is not None and side.buffers_doubled else granted


def _congestion(name: str, value: object) -> str:
    text = parse_text(name, value, "a congestion control, as in cubic")
    if not _CONGESTION_NAME.fullmatch(text):
        raise FieldError(f"{name} {show_value(text)}: expected a name of 1 to 15 of a-z, 0-9, _ and -, as in cubic")
    return text


def _mark(name: str, value: object) -> str:
    text = str(value).strip().upper()
    if isinstance(value, int | str) and not isinstance(value, bool):
        if text in _MARKS:
            return _MARK_NAMES[_MARKS[text]]
        if text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= _MOST_MARK:
            return mark_name(int(text))
    names = "EF, VA, AF11 to AF43, CS0 to CS7, BE, LE"
    raise FieldError(f"{name} {show_value(value)}: expected a mark by its name ({names}) or number, 0 to 63, as in EF")


def mark_name(mark: int) -> str:
    """Return the name of a mark (DSCP) as `EF`, or its number as `5` if it has no name."""
    return _MARK_NAMES.get(mark, str(mark))


def mark_number(text: str) -> int:
    """Return the number, 0 to 63, of a mark (DSCP), given by its name or as a number in a text."""
    return _MARKS[text] if text in _MARKS else int(text)


WINDOW: Final[Setting[int | None]] = Setting(
    name="window",
    meaning="TCP window: SO_SNDBUF and SO_RCVBUF requested, 1K to 1024M, or default.",
    parse=or_default(_window),
    text=default_or(format_bytes),
    schema={**_WINDOW_SCHEMA, "examples": ["64K", "200K", DEFAULT]},
    unset=None,
    stored="window_bytes",
    spans="sizes",
    iperf3=lambda size: ["-w", str(size)],
    order=OrderKey("window", bounds=(1, 2**30)),
    effective=Effective(ends=Ends.BOTH, of=_window_of_side),
    columns=(
        as_column("window_bytes", "B", "window requested of each flow; empty: none"),
        as_column("window_effective_bytes", "B", "the smaller granted buffer, SO_SNDBUF or SO_RCVBUF; of Linux half"),
        DataColumn(
            name="sndbuf_bytes",
            unit="B",
            levels=ONLY_FLOWS,
            meaning="SO_SNDBUF at the sender as read back (Linux doubles it)",
        ),
        DataColumn(
            name="rcvbuf_bytes",
            unit="B",
            levels=ONLY_FLOWS,
            meaning="SO_RCVBUF at the receiver as read back (Linux doubles it)",
        ),
    ),
    title=Title("Window", "KiB", kib_text),
    phrase=lambda size: f"window {size_words(size or 0)}",
)
WINDOW_TOTAL: Final[Setting[int | None]] = Setting(
    name="window_total",
    meaning="Total TCP window of the flows of a pair: each gets total / parallel.",
    heading="Total\nwindow",
    parse=or_default(_window),
    text=default_or(format_bytes),
    schema={**_WINDOW_SCHEMA, "examples": ["128K"]},
    unset=None,
    stored="window_total_bytes",
    spans="sizes",
    columns=(as_column("window_total_bytes", "B", "window requested for all flows of a pair together"),),
    title=Title("Total window", "KiB", kib_text),
    phrase=lambda size: f"total window {size_words(size or 0)}",
    noun="window",
)
MSS: Final = whole_number(
    "mss",
    _MIN_MSS,
    _MAX_MSS,
    1460,
    8960,
    meaning="Maximum segment size requested (TCP_MAXSEG), 88 to 32767 bytes, or default.",
    heading="MSS",
    kinds=CONNECTIONS,
    iperf3=lambda size: ["-M", str(size)],
    order=OrderKey("mss", bounds=(_MIN_MSS, _MAX_MSS)),
    effective=Effective[int | None](
        of=lambda side: side.tcp.mss,
        # A requested MSS includes TCP options: 1460 bytes are 1448 bytes of payload and 12 bytes of timestamps.
        equal=lambda asked, side: asked == (side.tcp.mss or 0) + (TIMESTAMPS_OPTION if side.tcp.timestamps else 0),
        column="mss_effective",
    ),
    columns=(
        as_column("mss", "B", "MSS requested; empty: none"),
        as_column("mss_effective", "B", "payload of a full segment on the wire (tcpi_snd_mss)"),
        as_column("mtu", "B", "path MTU as the sender's kernel has it (tcpi_pmtu)"),
    ),
    title=Title("MSS", "B"),
    phrase=lambda size: f"MSS {size}",
    noun="MSS",
)
CONGESTION: Final[Setting[str | None]] = Setting(
    name="congestion",
    meaning="Congestion control by its kernel name, or default.",
    parse=or_default(_congestion),
    schema={"type": "string", "pattern": f"^{_CONGESTION_NAME.pattern}$", "examples": ["cubic", "bbr", "reno"]},
    unset=None,
    type=str,
    kinds=CONNECTIONS,
    iperf3=lambda name: ["-C", name or ""],
    order=OrderKey("congestion"),
    effective=Effective("congestion", str, column="congestion"),
    columns=(as_column("congestion", "", "congestion control in use"),),
    title=Title("Congestion control"),
    phrase=str,
    noun="congestion control",
)
NODELAY: Final = flag(
    "nodelay",
    meaning="true: send small segments at once (TCP_NODELAY); or default. Default of test requests: true.",
    kinds=CONNECTIONS,
    iperf3=lambda on: ["-N"] if on else [],
    order=OrderKey("nodelay"),
    effective=Effective("nodelay", bool, column="nodelay"),
    columns=(as_column("nodelay", "", "TCP_NODELAY in use"),),
    title=Title("Nodelay"),
)
ZEROCOPY: Final = flag(
    "zerocopy",
    meaning="true: senders of TCP streams request MSG_ZEROCOPY; false, default: they copy into the kernel.",
    kinds=(TCP,),
    engines=(AGENT,),
    order=OrderKey("zerocopy", Ends.SENDER),
    columns=(
        as_column("zerocopy", "", "true: senders of TCP streams were to request MSG_ZEROCOPY; empty: not set"),
        as_column(
            "zerocopy_effective",
            "",
            "share of the sends whose bytes the kernel reports as not copied; empty: zerocopy was not requested",
            4,
        ),
    ),
    title=Title("Zerocopy"),
)
COPY: Final = flag(
    "copy",
    meaning="true: receivers of TCP streams copy the bytes into their memory; false, default: they discard them in the "
    "kernel (MSG_TRUNC).",
    kinds=(TCP,),
    engines=(AGENT,),
    order=OrderKey("copy", Ends.RECEIVER),
    effective=Effective("copied", bool, Ends.RECEIVER, column="copy_effective"),
    columns=(
        as_column("copy", "", "true: receivers of TCP streams were to copy the bytes; empty: not set"),
        as_column("copy_effective", "", "whether the receivers of TCP streams copied the bytes into their memory"),
    ),
    title=Title("Copy"),
)
DSCP: Final[Setting[str | None]] = Setting(
    name="dscp",
    meaning="Mark of all packets (DSCP), by name (EF, VA, AF11 to AF43, CS0 to CS7, BE, LE) or number, 0 to 63; "
    "or default. The effective mark is that of arriving packets.",
    heading="DSCP",
    parse=or_default(_mark),
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": _MOST_MARK},
            {"type": "string", "pattern": rf"^\s*({_MARK_PATTERN})\s*$"},
            {"const": DEFAULT},
        ],
        "examples": ["EF", "AF41", 46],
    },
    unset=None,
    type=str,
    iperf3=lambda mark: ["-S", str(mark_number(mark or "0") << 2)],
    order=OrderKey("dscp", bounds=(0, _MOST_MARK), number=mark_number, probes=True),
    effective=Effective(
        "marks",
        str,
        Ends.BOTH,
        column="dscp_effective",
        counted=CountedValue(
            name=lambda octet: mark_name(octet >> 2),  # drop the two ECN bits
            share="dscp_kept_pct",
            units={"tcp": "packets of handshakes", "udp": "datagrams"},
            cause="a device on the path rewrites the mark",
            remedy="Let the switches and routers on the path keep the mark (trust DSCP).",
        ),
    ),
    columns=(
        as_column("dscp", "", "mark (DSCP) requested of all packets; empty: none"),
        as_column(
            "dscp_effective",
            "",
            "all marks with which packets arrived: UDP datagrams, or packets of TCP handshakes; empty if unknown",
        ),
        as_column("dscp_kept_pct", "%", "share of packets that arrived with the requested mark", 2),
    ),
    title=Title("DSCP"),
    phrase=lambda mark: f"DSCP {mark}",
    noun="DSCP",
)


def _multipath(side: Any) -> bool | None:  # noqa: ANN401 — a `Side` of rigctl.records, which imports this module
    """Tell whether a connection uses Multipath TCP; False after a fallback to TCP, None if unknown."""
    subflows = side.granted[MPTCP]
    return None if subflows is None else bool(subflows)


MPTCP: Final = flag(
    "mptcp",
    meaning="true: Multipath TCP over all addresses of the nodes' `ip mptcp endpoint`; false, default: TCP.",
    heading="MPTCP",
    kinds=CONNECTIONS,
    engines=(AGENT,),
    order=OrderKey("mptcp"),
    effective=Effective("mptcp", bool, Ends.BOTH, of=_multipath, column="mptcp_effective", reported_type=Subflows),
    columns=(
        as_column("mptcp", "", "true: connections were to use Multipath TCP; empty: not set"),
        as_column("mptcp_effective", "", "whether all connections use Multipath TCP; false: some fell back to TCP"),
        as_column("subflows", "", "smallest number of subflows that carried data of one flow; empty if unknown"),
        as_column(
            "subflow_bytes",
            "",
            "addresses and received bytes of each subflow; their sum can exceed `bytes`, because it includes the "
            "opening message, and counts data that came over two subflows twice",
        ),
    ),
    title=Title("MPTCP"),
    phrase=lambda on: "MPTCP" if on else "no MPTCP",
    noun="MPTCP",
)
OF_CONNECTIONS: Final = (CONGESTION, NODELAY, ZEROCOPY, COPY, DSCP, MPTCP)
"""Settings of sockets without a fixed place of their own in `SETTINGS`. Add a new setting of sockets here."""
