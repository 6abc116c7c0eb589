"""Multicast: what the agents count against nftables, and what is said of switches whose state is known.

`python tests/bench/bench_multicast.py counts|facts`, as root. The switch is a Linux bridge between network namespaces
that this makes; `rigctl run` measures on them by `transport: netns`. nftables counts the datagrams that reach each node
(ingress of its interface), and drops some of them at the switch. veth does not filter multicast, so that all that the
bridge sends to a port is seen there. The bridge snoops 0.5 s after it becomes the querier, unless
a case says otherwise (10 s where nobody sets it).

The expectations are those of the cases, written before the first run.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench import RIGCTL, ROOT, command, table
from processes import eventually
from snooping import RESPONSE_S, Bridge, address_of, bridged, snoops

from rigctl.records import Repetition
from rigctl.store import open_store

NAME: Final = f"mc{os.getpid()}-"
RATE_BPS: Final = 4_000_000
SIZE: Final = 1000
QUIET: Final = {"multicast", "virtual-rig"}
"""Codes of findings that are not on what a switch does."""
Bounds = tuple[float, float]
Act = Callable[[Bridge], None]
More = Mapping[str, Any]  # fields of a case


@dataclass(frozen=True)
class Case:
    """A state of the switch, and what is to be counted (`expect`) or said (`codes`)."""

    name: str
    codes: frozenset[str]
    expect: Mapping[str, Bounds] = field(default_factory=dict)
    snooping: bool = True
    querier: bool = True
    six: bool = False
    nodes: int = 4
    unjoined: int = 1
    duration_s: float = 10
    keys: str = "leave: 3.5s"
    options: Mapping[str, object] = field(default_factory=dict)
    before: Act | None = None  # before the run
    later: Sequence[tuple[float, Act]] = ()  # so many s after the sender's first datagram
    by: Sequence[str] = ()  # words before rigctl


def drop(port: str, rule: str, hook: str = "egress") -> Act:
    """Return what drops datagrams of a port by a rule of nftables, after which come `counter drop`."""
    table_of = f"netdev at_{port}_{hook}"

    def act(bridge: Bridge) -> None:
        bridge.namespace.run_lines(
            f"nft add table {table_of}",
            f"nft 'add chain {table_of} chosen {{ type filter hook {hook} device {port} priority 0; }}'",
            f"nft add rule {table_of} chosen {rule} counter drop",
        )

    return act


def undrop(port: str, hook: str = "egress") -> Act:
    return lambda bridge: bridge.namespace.run_lines(f"nft delete table netdev at_{port}_{hook}")


def both(*acts: Act) -> Act:
    return lambda bridge: [act(bridge) for act in acts][-1]


def querier(on: bool) -> Act:
    return lambda bridge: bridge.set(mcast_querier=int(on))


def snooping(on: bool) -> Act:
    return lambda bridge: bridge.set(mcast_snooping=int(on))


def router_port(port: str) -> Act:
    return lambda bridge: bridge.namespace.run_lines(f"ip link set {port} type bridge_slave mcast_router 2")


def other_querier(bridge: Bridge) -> None:
    """Connect another bridge, which asks every second, to the switch."""
    bridge.namespace.run_lines(
        "ip link add br9 type bridge mcast_snooping 1 mcast_query_response_interval 50 mcast_query_interval 100"
        " mcast_startup_query_interval 100",
        "ip link set br9 type bridge mcast_querier 1",
        "ip link add p9 type veth peer name q9",
        "ip link set p9 master br0 up",
        "ip link set q9 master br9 up",
        "ip link set br9 up",
    )


DATAGRAMS: Final = "udp dport 61000-64999"
EVERY_50TH: Final = f"{DATAGRAMS} numgen inc mod 50 == 7"
EVERY_10TH: Final = f"{DATAGRAMS} numgen inc mod 10 == 7"
IGMP: Final = "ip protocol igmp"
LEAVES: Final = "@th,0,8 0x17"
SLOW: Final = {"mcast_last_member_interval": 200}
ASKS: Final = {"mcast_query_interval": 100, "mcast_startup_query_interval": 100}
"""A querier that asks every second, as fast as Linux allows."""


def codes(*names: str) -> frozenset[str]:
    return frozenset(f"multicast-{name}" for name in names)


SNOOPED: Final = codes("snooped", "querier")
EXACT: Final[Mapping[str, Bounds]] = {"unjoined: agent - nft": (0, 0), "joined: nft - agent": (0, 4), "lost": (0, 0)}
KEPT: Final[Mapping[str, Bounds]] = {**EXACT, "unjoined": (0, 0), "join ms": (0, 200)}
FLOODED: Final[Mapping[str, Bounds]] = {**EXACT, "unjoined %": (100, 100), "join ms": (0, 200)}
LEFT: Final[Mapping[str, Bounds]] = {"leave ms": (1800, 2600)}

_COUNTED: Final[Mapping[str, More]] = {
    "no snooping": {"snooping": False, "querier": False, "expect": FLOODED, "duration_s": 6},
    "snooping, no querier": {"querier": False, "expect": FLOODED, "duration_s": 6},
    "snooping and querier": {"expect": {**KEPT, **LEFT}},
    "snooping and querier, newest version": {
        "options": {"mcast_igmp_version": 3, "mcast_mld_version": 2},
        "expect": {**KEPT, **LEFT},
    },
    "querier that waits 0.2 s for other members": {
        "options": {"mcast_last_member_interval": 20},
        "expect": {**KEPT, "leave ms": (250, 900)},
    },
    "querier from 3 s on": {
        "querier": False,
        "later": [(3.0, querier(True))],
        "expect": {**EXACT, "unjoined until s": (3.0 + RESPONSE_S - 0.3, 3.0 + RESPONSE_S + 1.5)},
    },
    "querier until 3 s": {"later": [(3.0, querier(False))], "expect": {**EXACT, "unjoined from s": (2.8, 4.5)}},
    "snooping until 3 s": {"later": [(3.0, snooping(False))], "expect": {**EXACT, "unjoined from s": (2.8, 4.5)}},
    "1 in 50 dropped at a receiver's port": {
        "before": drop("p2", EVERY_50TH),
        "expect": {"unjoined": (0, 0), "loss % of 2": (1.9, 2.1), "loss % of 3": (0, 0)},
    },
    "1 in 10 dropped at the sender's port": {
        "before": drop("p1", EVERY_10TH, "ingress"),
        "expect": {"unjoined": (0, 0), "loss % of 2": (9.8, 10.2), "loss % of 3": (9.8, 10.2)},
    },
}
COUNTED: Final = tuple(
    Case(f"{name}, IPv{6 if six else 4}", frozenset(), six=six, **more)
    for six in (False, True)
    for name, more in _COUNTED.items()
)

FACTS: Final = (
    Case("snooping and a querier", SNOOPED),
    Case("snooping and a querier, IPv6", SNOOPED, six=True),
    Case("snooping and a querier, IGMPv3", SNOOPED, options={"mcast_igmp_version": 3}),
    Case("no snooping", codes("flooded-unqueried"), snooping=False, querier=False),
    Case("no snooping, IPv6", codes("flooded-unqueried"), snooping=False, querier=False, six=True),
    Case("snooping, no querier", codes("flooded-unqueried"), querier=False),
    Case(
        "no snooping, another querier", codes("flooded", "querier"), snooping=False, querier=False, before=other_querier
    ),
    Case("snooping, another querier", SNOOPED, querier=False, before=other_querier),
    Case("querier from 3 s on", codes("flooded-at-first", "querier"), querier=False, later=[(3.0, querier(True))]),
    Case(
        "querier from 3 s on, IPv6",
        codes("flooded-at-first", "querier"),
        querier=False,
        six=True,
        later=[(3.0, querier(True))],
    ),
    Case(
        "querier from 5 s on, which waits 10 s",
        codes("flooded-new-querier", "querier"),
        querier=False,
        options={"mcast_query_response_interval": 1000},
        later=[(5.0, querier(True))],
    ),
    Case(
        "a port as that of a router",
        codes("flooded-to-some", "querier"),
        nodes=5,
        unjoined=2,
        before=router_port("p4"),
    ),
    Case(
        "agents without CAP_NET_RAW",
        codes("unwatched"),
        by=("setpriv", "--inh-caps=-net_raw", "--bounding-set=-net_raw"),
    ),
    Case("no unjoined nodes, snooping", SNOOPED, unjoined=0),
    Case("no unjoined nodes, no snooping", codes("flooded-unqueried"), unjoined=0, snooping=False, querier=False),
    Case("all dropped at a receiver's port", SNOOPED | codes("nothing"), before=drop("p2", DATAGRAMS)),
    Case("reports dropped at a receiver's port", SNOOPED | codes("nothing"), before=drop("p2", IGMP, "ingress")),
    Case("1 in 50 dropped at a receiver's port", SNOOPED | codes("lost-at-one"), before=drop("p2", EVERY_50TH)),
    Case(
        "1 in 50 dropped at a port, 1 in 10 at another",
        SNOOPED | codes("lost"),
        before=both(drop("p2", EVERY_50TH), drop("p3", EVERY_10TH)),
    ),
    Case(
        "1 in 50 dropped at the sender's port", SNOOPED | codes("lost-at-all"), before=drop("p1", EVERY_50TH, "ingress")
    ),
    Case(
        "reports dropped until 3 s, query every second",
        SNOOPED | codes("join-slow"),
        options=ASKS,
        before=drop("p2", IGMP, "ingress"),
        later=[(3.0, undrop("p2", "ingress"))],
    ),
    Case("leave after 4 s", SNOOPED | codes("leave-slow"), options=SLOW, duration_s=12, keys="leave: 6s"),
    Case("leave longer than watched", SNOOPED | codes("leave-open"), options=SLOW, keys="leave: 1.5s"),
    Case(
        "leaves dropped at the ports",
        SNOOPED | codes("leave-slow"),
        options={"mcast_query_interval": 400, "mcast_startup_query_interval": 400},
        before=both(drop("p2", f"{IGMP} {LEAVES}", "ingress"), drop("p3", f"{IGMP} {LEAVES}", "ingress")),
        keys="leave: 4s",
    ),
    Case(
        "all dropped at a receiver's port from 4 s on",
        SNOOPED | codes("stopped", "lost-at-one"),
        later=[(4.0, drop("p2", DATAGRAMS))],
    ),
    Case("260 s, snooping, no querier", codes("flooded-unqueried", "querier-missing"), querier=False, duration_s=265),
)


@contextmanager
def named(bridge: Bridge) -> Iterator[None]:
    """Give the nodes' namespaces names, by which rigctl reaches them."""
    names = {f"{NAME}{node}": namespace.name for node, namespace in bridge.nodes.items()}
    try:
        for name, holder in names.items():
            subprocess.run(["ip", "netns", "attach", name, holder], check=True)
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def run(case: Case) -> tuple[Repetition, list[str], dict[str, int]]:
    """Measure a case. Return its repetition, the codes of its findings, and what nftables counted at each node."""
    with ExitStack() as stack:
        bridge = stack.enter_context(bridged(case.nodes, case.snooping, case.querier, **case.options))
        stack.enter_context(named(bridge))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        group = "ff15::77:1" if case.six else "239.255.77.1"
        for node in bridge.nodes:
            bridge.count(node, group)
        if case.before is not None:
            case.before(bridge)
        eventually(lambda: "fe80" in bridge.namespace.run("ip", "-6", "address", "show", "dev", "br0"))
        snoops(bridge)
        nodes = {
            f"n{node}": {
                "address": f"{NAME}{node}",
                "data_address": address_of(node, case.six),
                "data_interface": "n0",
                "rate": "1G",
                "mtu": 1500,
            }
            for node in bridge.nodes
        }
        rig = {"transport": "netns", "nodes": nodes}
        (folder / "rig.yaml").write_text(json.dumps(rig))
        pairs = [f"n1 -> n{node}" for node in bridge.nodes if node != "1"]
        (folder / "case.yaml").write_text(
            f"test: multicast\nrig: ./rig.yaml\npairs: {json.dumps(pairs)}\nunjoined: {case.unjoined}\nsize: {SIZE}\n"
            f"rate: {RATE_BPS}\nburst: 1\ngroup: '{group}'\nduration: {case.duration_s}s\n{case.keys}\n"
        )
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "RIGCTL_STORE": str(folder / "db"),
            "XDG_CACHE_HOME": str(folder),
        }
        words = [*case.by, *RIGCTL, "run", "case.yaml", "--quiet"]
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        threading.Thread(target=_act, args=(case, bridge, process), daemon=True).start()
        output, errors = process.communicate(timeout=case.duration_s + 120)
        assert process.returncode == 0, output.decode() + errors.decode()
        number = output.decode().split()[0]
        shown = subprocess.run([*RIGCTL, "show", number, "--json"], env=environment, capture_output=True, check=True)
        found = [finding["code"] for finding in json.loads(shown.stdout)["findings"]]
        store = open_store(str(folder / "db"))
        stack.callback(store.close)
        (repetition,) = store.repetitions(number)
        return repetition, found, {node: bridge.counted(node, case.six) for node in bridge.nodes}


def _act(case: Case, bridge: Bridge, process: "subprocess.Popen[bytes]") -> None:
    """Do what a case does later, counted from the first datagram that the switch takes from the sender."""
    if not case.later:
        return

    def began() -> bool:
        text = bridge.namespace.run("ip", "-s", "-j", "link", "show", "p1")
        return int(json.loads(text)[0]["stats64"]["rx"]["bytes"]) > 20_000 or process.poll() is not None

    while not began():
        time.sleep(0.02)
    start_s = time.monotonic()
    for moment_s, act in case.later:
        time.sleep(max(0.0, start_s + moment_s - time.monotonic()))
        if process.poll() is None:
            act(bridge)


def seen_of(case: Case) -> dict[str, float]:
    """Return what the agents of a case counted, and the differences to nftables."""
    repetition, _, counted = run(case)
    found: dict[str, float] = {
        "unjoined: agent - nft": 0,
        "joined: nft - agent": 0,
        "lost": 0,
        "join ms": 0,
        "leave ms": 0,
    }
    for flow in repetition.flows:
        node, own, side = flow.pair.destination.removeprefix("n"), flow.membership, flow.receiver
        assert own is not None and side is not None and side.datagrams is not None and flow.sender is not None
        assert flow.sender.datagrams is not None and own.before is not None and own.after is not None
        if not own.joins:
            found["unjoined: agent - nft"] += own.before - counted[node]
            found["unjoined"] = own.before
            found["unjoined %"] = round(100 * own.before / flow.sender.datagrams.count, 2)
            found["unjoined from s"] = round((own.before_first_ns or 0) / 1e9, 2)
            found["unjoined until s"] = round((own.before_last_ns or 0) / 1e9, 2)
            continue
        came, due = side.datagrams.count, flow.datagrams_due or 0
        found["joined: nft - agent"] = max(
            found["joined: nft - agent"], counted[node] - own.before - came - own.after, key=abs
        )
        found["lost"] += due - came
        found[f"loss % of {node}"] = round(100 * (due - came) / due, 2)
        found["join ms"] = max(found["join ms"], round(((own.first_ns or 0) - (own.joined_ns or 0)) / 1e6, 1))
        found["leave ms"] = max(found["leave ms"], round(((own.after_last_ns or 0) - (own.left_ns or 0)) / 1e6))
    return found


def bounds(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} … {high:g}"


def _rows(
    cases: Sequence[Case], only: str, row: Callable[[Case], tuple[str, str, bool]], good: list[bool]
) -> Iterator[list[str]]:
    for case in cases:
        if not re.search(only, case.name):
            continue
        try:
            expected, came, held = row(case)
        except Exception as error:
            expected, came, held = "", f"{type(error).__name__}: {error}"[:300].replace("\n", " "), False
        good.append(held)
        yield [case.name, expected, came, "yes" if held else "NO"]


def counts(only: str = "") -> None:
    """Compare what the agents count with nftables, and with what the switch was set to do."""

    def row(case: Case) -> tuple[str, str, bool]:
        found = seen_of(case)
        expected = [f"{key} {bounds(*limits)}" for key, limits in case.expect.items()]
        came = [f"{key} {found[key]:g}" for key in case.expect]
        held = all(low <= found[key] <= high for key, (low, high) in case.expect.items())
        return "; ".join(expected), "; ".join(came), held

    good: list[bool] = []
    table("Counts", ("case", "expected", "came", "as expected"), _rows(COUNTED, only, row, good))
    print(f"\nas expected: {sum(good)} of {len(good)}")


def facts(only: str = "") -> None:
    """Bring the switch into each state, and print which findings were expected, and which came."""

    def row(case: Case) -> tuple[str, str, bool]:
        _, found, _ = run(case)
        own = {code for code in found if code.startswith("multicast-") or code == "socket-buffers-full"} - QUIET
        asked, came = (", ".join(sorted(one.removeprefix("multicast-") for one in each)) for each in (case.codes, own))
        return asked, came, own == case.codes

    good: list[bool] = []
    table("Findings", ("state of the switch", "expected", "came", "as expected"), _rows(FACTS, only, row, good))
    print(f"\nas expected: {sum(good)} of {len(good)}")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("namespaces need root")
    command(__doc__, counts, facts)
