"""The causes that `bench_causes.py` provokes, and what a report must and must not say of each.

Expectations follow from the causes. They were written, and committed, before any of these was run; `FURTHER` are proofs
for rules that the first run made change. Nothing else is expected: a finding on connections or requests that is neither
in `must` nor in `may` is wrong. `says` is a regular expression that the text or remedy of some finding matches, `never`
one that none matches.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

CONNECT_CODES: Final = frozenset(
    {
        "backlog-full",
        "connections-failed",
        "connections-late",
        "connections-refused",
        "connections-reset",
        "connections-unanswered",
        "conntrack-clash",
        "conntrack-full",
        "ports-exhausted",
        "syn-cookies",
        "syns-lost",
    }
)
REQUEST_CODES: Final = frozenset(
    {
        "requests-held",
        "requests-late",
        "requests-rate-not-reached",
        "requests-stalled",
        "requests-unanswered",
    }
)
"""`requests-stalled` and `conntrack-clash` are no codes of rigctl yet: a right report would name these causes."""
NOT_MEASURED: Final = "not-measured"


@dataclass(frozen=True, slots=True)
class Act:
    """A line of a shell on a node. `at_s`: time from the beginning of the test; None: before the run.

    In the line, `$agents` are the process ids of the node's agent.
    """

    node: str
    line: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: what a test measures from a to b (c has a link of 10 Mbit/s, d one of 20 ms), and what is provoked."""

    name: str
    keys: str
    acts: tuple[Act, ...] = ()
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    says: str = ""
    never: str = ""
    to: str = "b"
    kind: str = field(default="connect")

    def scenario(self) -> str:
        lines = ["rig: rig.yaml", f"test: {self.kind}", f"pairs: [a -> {self.to}]", "repeat: 1", "max_skew: 5s"]
        return "\n".join([*lines, *self.keys.split("; "), ""])


def codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def connect(
    name: str,
    acts: Iterable[Act] = (),
    must: str = "",
    may: str = "",
    *,
    close: str = "reset",
    flows: int = 1,
    seconds: float = 2,
    more: str = "",
    says: str = "",
    never: str = "",
) -> Cause:
    keys = f"duration: {seconds:g}s; matrix: {{close: {close}, parallel: {flows}{more}}}"
    return Cause(name, keys, tuple(acts), codes(must), codes(may), says, never)


def requests(
    name: str,
    per_second: int,
    acts: Iterable[Act] = (),
    must: str = "",
    may: str = "",
    *,
    size: str = "100",
    reply: str = "200",
    flows: int = 1,
    seconds: float = 3,
    more: str = "",
    to: str = "b",
) -> Cause:
    matrix = f"size: {size}, reply: {reply}, per_second: {per_second}, parallel: {flows}{more}"
    keys = f"duration: {seconds:g}s; matrix: {{{matrix}}}"
    return Cause(name, keys, tuple(acts), codes(must), codes(may), to=to, kind="requests")


def wall(node: str, rule: str, hook: str = "input", at_s: float | None = 0.5, kind: str = "filter") -> Act:
    """Return what makes a firewall with one rule, after the flows are open."""
    return Act(node, f"nft 'table inet wall {{ chain c {{ type {kind} hook {hook} priority 0; {rule}; }}; }}'", at_s)


def closed_for(node: str, rule: str, seconds: float, at_s: float) -> Act:
    """Return what makes a firewall with one rule, and removes it again."""
    made = wall(node, rule, at_s=at_s)
    return Act(node, f"{made.line}; sleep {seconds}; nft delete table inet wall", at_s)


def stopped(node: str, seconds: float, at_s: float = 1.0) -> Act:
    return Act(node, f"kill -STOP $agents; sleep {seconds}; kill -CONT $agents", at_s)


def sysctl(node: str, *settings: str, at_s: float | None = None) -> Act:
    return Act(node, f"sysctl -qw {' '.join(settings)}", at_s)


def ports(count: int) -> Act:
    return sysctl("a", "net.ipv4.tcp_tw_reuse=0", f"net.ipv4.ip_local_port_range='40000 {39999 + count}'")


def files(node: str, count: int) -> Act:
    """Return what leaves the node's agent only the descriptors below `count`: it makes no socket if all are taken.

    With 16 flows a sender has all below 16; a receiver all below 7, where its first listening socket was.
    """
    return Act(node, f"for p in $agents; do prlimit --pid $p --nofile={count}:{count}; done", 0.5)


SYN: Final = "tcp flags & (syn|ack) == syn"
SYN_ACK: Final = "tcp flags & (syn|ack) == (syn|ack)"
DATA: Final = "tcp flags & psh == psh"
SMALL_QUEUE: Final = sysctl("b", "net.core.somaxconn=1", "net.ipv4.tcp_syncookies=0")
PROHIBIT: Final = "ip rule add pref 0 to 10.77.0.2 prohibit; sleep 1; ip rule del pref 0 to 10.77.0.2"
FIREWALL: Final = "as with a firewall that drops"
UNANSWERED: Final = "connections-unanswered"

CONNECT: Final = (
    connect("nothing wrong"),
    connect("nothing wrong, 8 flows, 200 per second", flows=8, more=", per_second: 200"),
    connect("64 ports, closed by the receiver", [ports(64)], close="receiver"),
    connect("64 ports, closed by the sender", [ports(64)], "ports-exhausted", close="sender"),
    connect(
        "64 ports, closed by the sender, tcp_tw_reuse=1",
        [ports(64), sysctl("a", "net.ipv4.tcp_tw_reuse=1")],
        "ports-exhausted",
        close="sender",
        seconds=3,
    ),
    connect(
        "10 % of the SYNs lost",
        [wall("b", f"{SYN} numgen random mod 10 == 0 drop")],
        "syns-lost",
        flows=8,
        seconds=3,
    ),
    connect(
        "10 % of the SYN-ACKs lost",
        [wall("a", f"{SYN_ACK} numgen random mod 10 == 0 drop")],
        "syns-lost",
        flows=8,
        seconds=3,
    ),
    connect(
        "firewall passes 20 SYNs per second",
        [wall("b", f"{SYN} limit rate over 20/second burst 5 packets drop")],
        "syns-lost",
        UNANSWERED,
        flows=8,
        seconds=4,
    ),
    connect("all SYNs dropped at the receiver", [wall("b", f"{SYN} drop")], f"syns-lost {UNANSWERED}", seconds=7),
    connect(
        "all SYNs dropped by the sender's own firewall",
        [wall("a", f"{SYN} drop", "output")],
        f"syns-lost {UNANSWERED}",
        seconds=7,
    ),
    connect("refused by a reset", [wall("b", f"{SYN} reject with tcp reset")], "connections-refused"),
    connect(
        "refused: ICMP admin-prohibited",
        [wall("b", f"meta nfproto ipv4 {SYN} reject with icmp admin-prohibited")],
        "connections-failed",
        "syns-lost",
        says="EHOSTUNREACH",
    ),
    connect("the request is reset", [wall("b", f"{DATA} reject with tcp reset")], "connections-reset"),
    connect("the answer is dropped", [wall("a", f"{DATA} drop")], UNANSWERED, seconds=7),
    connect(
        "receiver stopped for 6 s",
        [stopped("b", 6.0)],
        UNANSWERED,
        seconds=8,
        never=FIREWALL,
    ),
    connect(
        "no descriptor left at the receiver",
        [files("b", 7)],
        UNANSWERED,
        flows=16,
        seconds=7,
        never=FIREWALL,
    ),
    connect(
        "no descriptor left at the sender",
        [files("a", 16)],
        "connections-failed",
        flows=16,
        says="EMFILE",
    ),
    connect("no route (prohibit)", [Act("a", PROHIBIT, 0.5)], "connections-failed", says="EACCES"),
    connect(
        "queue of 16, receiver stopped for 1 s, 32 flows",
        [sysctl("b", "net.core.somaxconn=16"), stopped("b", 1.0)],
        "backlog-full",
        f"syn-cookies {UNANSWERED}",
        flows=32,
        seconds=3,
    ),
    connect("queue of 1, no cookies, 8 flows", [SMALL_QUEUE], "backlog-full", UNANSWERED, flows=8, seconds=3),
    connect(
        "queue of 1, no cookies, 64 flows",
        [SMALL_QUEUE],
        "",
        f"not-measured backlog-full {UNANSWERED}",
        flows=64,
        seconds=3,
        says=r"net\.core\.somaxconn",
        never="firewall that drops",
    ),
    connect(
        "cookies always (tcp_syncookies=2)",
        [sysctl("b", "net.ipv4.tcp_syncookies=2", at_s=0.5)],
        "",
        "syn-cookies",
        never="was full",
    ),
    connect(
        "receiver stopped for 1 s, 100 per second",
        [stopped("b", 1.0)],
        "connections-late",
        seconds=3,
        more=", per_second: 100",
    ),
    connect("a million per second wanted", [], "connections-late", flows=8, more=", per_second: 1000000"),
    connect(
        "NAT with one port (conntrack refuses)",
        [wall("a", f"{SYN} snat ip to 10.77.0.1:5000", "postrouting", kind="nat")],
        "conntrack-clash",
        f"syns-lost {UNANSWERED}",
        flows=4,
        seconds=4,
        never="nf_conntrack_max",
    ),
    connect(
        "10 % of the ends (FIN) lost, 500 per second",
        [wall("b", "tcp flags & fin == fin numgen random mod 10 == 0 drop")],
        close="sender",
        flows=4,
        more=", per_second: 500",
    ),
    connect(
        "a firewall drops SYNs from the beginning",
        [wall("b", f"{SYN} drop", at_s=None)],
        NOT_MEASURED,
        says="nft list ruleset",
        never="somaxconn",
    ),
)

LATE, HELD, STALLED = "requests-late", "requests-held", "requests-stalled"
LOST, SLOW = "requests-unanswered", "requests-rate-not-reached"
BOTH: Final = (closed_for("b", "tcp flags & ack == ack drop", 0.3, 1.0),)
REQUESTS: Final = (
    requests("nothing wrong", 500, flows=2),
    requests("nothing wrong, low load", 20),
    requests("nothing wrong, 20 ms", 500, flows=2, to="d"),
    requests("sender stopped for 200 ms", 1000, [stopped("a", 0.2)], LATE),
    requests("sender stopped for 40 ms, five times", 1000, [stopped("a", 0.04, 0.6 + 0.4 * n) for n in range(5)], LATE),
    requests("receiver stopped for 200 ms", 1000, [stopped("b", 0.2)], STALLED),
    requests("receiver stopped for 200 ms, 4 flows", 1000, [stopped("b", 0.2)], STALLED, flows=4),
    requests("receiver stopped for 200 ms, few requests", 20, [stopped("b", 0.2)], "", STALLED),
    requests("receiver stopped for 200 ms, 32 KB", 1000, [stopped("b", 0.2)], HELD, STALLED, size="32K"),
    requests("receiver stopped across the end", 1000, [stopped("b", 0.4, 2.9)], STALLED),
    requests("receiver stopped for good", 200, [stopped("b", 5.0, 0.6)], LOST, STALLED),
    requests("requests dropped for good", 200, [closed_for("b", f"{DATA} drop", 4.6, 1.0)], LOST, STALLED),
    requests("nothing passes for 300 ms", 1000, BOTH, STALLED),
    requests("10 Mbit/s, load 0.8", 60, size="16K", to="c"),
    requests("10 Mbit/s, load 2, requests", 150, [], SLOW, f"{HELD} {LOST}", size="16K", to="c"),
    requests("10 Mbit/s, load 2, replies", 38, [], SLOW, LOST, reply="64K", to="c"),
    requests("window too small for 20 ms", 300, [], f"{HELD} {SLOW}", LOST, size="10K", more=", window: 16K", to="d"),
    requests("a million per second wanted", 1000000, [], SLOW, f"{LATE} {HELD} {LOST}", seconds=2),
)

FURTHER: Final = (
    connect("256 ports, closed by the sender, 8 flows", [ports(256)], "ports-exhausted", close="sender", flows=8),
    connect(
        "30 % of the SYN-ACKs lost",
        [wall("a", f"{SYN_ACK} numgen random mod 10 < 3 drop")],
        "syns-lost",
        UNANSWERED,
        flows=16,
        seconds=3,
    ),
    connect("receiver stopped for 5.6 s, 4 flows", [stopped("b", 5.6)], UNANSWERED, flows=4, seconds=8, never=FIREWALL),
    connect("the request is dropped", [wall("b", f"{DATA} drop")], UNANSWERED, flows=2, seconds=7, never="SYNs again"),
    connect(
        "refused: ICMP port unreachable",
        [wall("b", f"meta nfproto ipv4 {SYN} reject with icmp port-unreachable")],
        "connections-refused",
        "syns-lost",
    ),
    connect(
        "cookies always, 8 flows, 200 per second",
        [sysctl("b", "net.ipv4.tcp_syncookies=2", at_s=0.5)],
        "",
        "syn-cookies",
        flows=8,
        more=", per_second: 200",
        never="was full",
    ),
    connect(
        "queue of 8, receiver stopped for 1 s, 64 flows",
        [sysctl("b", "net.core.somaxconn=8", at_s=None), stopped("b", 1.0)],
        "backlog-full",
        f"syn-cookies {UNANSWERED}",
        flows=64,
        seconds=3,
    ),
    connect(
        "queue of 1, no cookies, 128 flows",
        [SMALL_QUEUE],
        "",
        f"not-measured backlog-full {UNANSWERED}",
        flows=128,
        seconds=3,
        says=r"net\.core\.somaxconn",
        never="firewall that drops",
    ),
    connect(
        "NAT with two ports (conntrack refuses)",
        [wall("a", f"{SYN} snat ip to 10.77.0.1:5000-5001", "postrouting", kind="nat")],
        "conntrack-clash",
        f"syns-lost {UNANSWERED}",
        flows=8,
        seconds=4,
        never="nf_conntrack_max",
    ),
    requests("receiver stopped for 400 ms, 500 per second", 500, [stopped("b", 0.4)], STALLED, flows=4),
    requests("receiver stopped twice for 200 ms", 1000, [stopped("b", 0.2, 0.8), stopped("b", 0.2, 1.8)], STALLED),
    requests("receiver stopped for 300 ms, 20 ms", 200, [stopped("d", 0.3)], STALLED, to="d"),
    requests("sender stopped for 400 ms, 500 per second", 500, [stopped("a", 0.4)], LATE, flows=4),
    requests(
        "sender, then receiver stopped for 200 ms",
        1000,
        [stopped("a", 0.2, 0.8), stopped("b", 0.2, 1.8)],
        f"{LATE} {STALLED}",
    ),
    requests("receiver stopped for good, 50 per second", 50, [stopped("b", 5.0, 0.8)], LOST, STALLED),
    requests("receiver stopped across the end, 2 flows", 400, [stopped("b", 0.5, 2.8)], STALLED, flows=2),
    requests("replies dropped for 150 ms", 1000, [closed_for("a", f"{DATA} drop", 0.15, 1.0)], STALLED),
    requests("10 Mbit/s, load 0.9", 250, size="4K", to="c"),
    requests("10 Mbit/s, load 1.3, replies", 25, [], SLOW, LOST, reply="64K", to="c"),
    requests("nothing wrong, 20 ms, 4 flows, low load", 40, flows=4, to="d"),
)
