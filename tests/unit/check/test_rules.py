"""Facts in, findings out: each rule with what it is to find, and with what is in order or unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rigctl.check.judge import check_answer, judge_state
from rigctl.findings import Finding, Severity
from rigctl.findings import nodes as said
from rigctl.hosts.surroundings import Disk, Route, Surroundings
from rigctl.paths.path_rules import check_families
from rigctl.paths.probing import Icmp, PathState
from rigctl.paths.state import Failure, NodeState, Refusal, Rehearsal, RigState
from rigctl.records import Cell, Condition, HostSetting, Link, Pair, RunPlan
from rigctl.rig.inventory import Node, Rig
from rigctl.settings import BUSY_POLL, CONGESTION, MPTCP, MSS, PLACEMENT, READ, WINDOW, WRITE, Settings
from rigctl.switches import PortCounters

CONTROL = "net.ipv4.tcp_congestion_control"
SYSCTLS = {
    "net.core.rmem_max": "212992",
    "net.core.wmem_max": "212992",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    CONTROL: "cubic",
    "net.ipv4.tcp_available_congestion_control": "reno cubic",
}
FACTS: dict[str, Any] = {"interface": "eth0", "mtu": 1500, "sysctls": SYSCTLS, "up": True, "carrier": 1, "uid": 0}

OF_STATE = {"address", "around", "clock_ahead_s", "deaf", "failure", "neighbours", "program", "refused"}


def seen_of(
    *changes: Mapping[str, Any],
    paths: tuple[PathState, ...] = (),
    plan: RunPlan | None = None,
    rate: int | None = 10**9,
) -> RigState:
    """A rig of as many nodes, a, b …, each with `FACTS` and what its change says of facts and of its state."""
    nodes: dict[str, NodeState] = {}
    for name, change in zip("abcdefgh", changes, strict=False):
        node = Node(name, f"10.0.0.{len(nodes) + 1}", Link(rate, None))
        held = {"address": node.address} | {key: change[key] for key in OF_STATE & change.keys()}
        facts = FACTS | {key: value for key, value in change.items() if key not in OF_STATE}
        nodes[name] = NodeState(node, facts, machine="x86_64", **held)
    rig = Rig("lab", "lab", {name: each.node for name, each in nodes.items()}, None)
    return RigState(rig, plan, nodes, paths)


def bad(state: RigState, *levels: Severity) -> list[Finding]:
    wanted = levels or (Severity.ERROR, Severity.WARNING)
    return [finding for finding in judge_state(state) if finding.level in wanted]


def codes(state: RigState, *levels: Severity) -> list[str]:
    """Return the findings as `a, b: no-root`: their subjects and codes."""
    return [f"{', '.join(finding.subject.names)}: {finding.code}" for finding in bad(state, *levels)]


def whole(source: str = "a", destination: str = "b", **change: Any) -> PathState:
    path = PathState(source, destination, 4, 9000, port=4711, heard={128, 9000}, stream="0", rtt_us=100)
    return replace(path, **change)


def plan_with(*cells: Cell, conditions: tuple[Condition, ...] = ()) -> RunPlan:
    return RunPlan("t", "", "s", "", "lab", "", (), 1, cells, conditions=conditions)


def cell(number: int = 1, **change: Any) -> Cell:
    return replace(Cell(number, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1), **change)


def routed(device: str | None, via: str | None = None, reason: str = "", **around: Any) -> dict[str, Any]:
    """Return the change of a node that reaches b over `device`."""
    return {"around": Surroundings({"10.0.0.2": Route("10.0.0.2", device, via, reason=reason)}, **around)}


def answered(mac: str | None) -> RigState:
    """Return a rig whose nodes cannot reach each other, and in which `mac` answers for the address of b."""
    a = {"mac": "0a", "neighbours": {"10.0.0.2": mac}}
    return seen_of(a, {"mac": "0b"}, {"mac": "0c"}, paths=(whole(**DROPPED), whole("b", "a", **DROPPED)))


def on_disk(disk: Disk) -> RigState:
    """Return a rig with this disk, whose test writes 2 GB to /data."""
    file = cell(test="file", message_bytes=10**9, parallel=2, folder="/data", settings=DISKS)
    return seen_of({"around": Surroundings(disks=(disk,))}, {}, plan=plan_with(file))


def rehearsed(text: str, *tests: int, **change: Any) -> RigState:
    """Return a rig whose node a refused `tests` in the rehearsal."""
    state = seen_of(change, {}, plan=plan_with(cell(), cell(2)))
    return replace(state, rehearsal=Rehearsal(2, 2, (Refusal("a", text, tests),)))


SOUND, DISKS = (whole(), whole("b", "a")), Settings({READ: "disk", WRITE: "disk"})
UDP = cell(test="udp", transport="udp", message_bytes=64)
BBR, RENO = plan_with(cell(settings=Settings({CONGESTION: "bbr"}))), {**SYSCTLS, CONTROL: "reno"}
JUMBO = plan_with(cell(condition="jumbo"), conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),))
DROPPED: dict[str, Any] = {"heard": set(), "lost": {128, 9000}, "stream": None}
SILENT = whole("b", "a", stream="ENETUNREACH", heard=set(), refused={128: "ENETUNREACH"})
UNHEARD = [whole(name, "h", heard=set(), stream=None) for name in "abcd"]
HOST = {"mac": "0b", "boot_id": "x", "addresses": ["10.0.0.2", "10.0.0.3"]}
FORBIDDEN = routed(None, reason="RTNETLINK answers: Permission denied; prohibit 10.0.0.2")
REFUSING: dict[str, Any] = {"stream": "EACCES", "refused": {128: "EACCES"}}
LO: dict[str, Any] = {"interface": "lo", "mtu": 65536, "boot_id": "x", "address": "127.0.0.1"}
OFF = {"sysctls": {**SYSCTLS, "net.ipv4.tcp_window_scaling": "0"}}
LATE = (whole(rtt_us=20_000), whole("b", "a", rtt_us=20_000))
MACS, HELD_TWICE = ({"mac": "0a"}, {"mac": "0b"}), {"mac": "0c", "address": "10.0.0.2"}
TO_BOTH = (whole(stream="ECONNREFUSED"), whole("b", "a", **DROPPED), whole("a", "c"), whole("c", "a"))
LOADABLE = {"around": Surroundings(loadable=frozenset({"bbr"}))}
AROUND: dict[str, Any] = {"rx_bps": 5e6, "tx_bps": 12e6}
FILE = cell(test="file", message_bytes=10**9, folder="/data", settings=DISKS)
WRITTEN = Settings({READ: "memory", WRITE: "disk"})
DISK = {"around": Surroundings(disks=(Disk("/data", 15 * 10**8, device="/dev/sda1"),))}
HALF_FREE = {"around": Surroundings(disks=(Disk("/data", 5 * 10**8, device="/dev/sda1"),))}
ON_X, ON_Y = {**DISK, "boot_id": "x"}, {**DISK, "boot_id": "y"}
SHARED_DISK = seen_of(ON_X, ON_X | {"mac": "0b"}, plan=plan_with(FILE))
OF_BBR = plan_with(cell(condition="bbr"), conditions=(Condition("bbr", (HostSetting("sysctl", "bbr", CONTROL),)),))
FORWARD = plan_with(cell())
HOLE = whole(heard={128, 1000}, lost={1001, 9000})
FAR = "a -> h, b -> h, c -> h, d -> h: port-dropped"
CASES: dict[str, tuple[Any, ...]] = {
    "in order": (seen_of({}, {}, paths=SOUND),),
    "unknown": (seen_of(dict.fromkeys(("sysctls", "mtu", "up", "carrier", "uid")), {}),),
    "unknown on all nodes": (seen_of(*[{"sysctls": None}] * 2),),
    "another interface": (seen_of(routed("eth1", **AROUND), {}), "a: route-elsewhere", "a: other-traffic"),
    "no route": (seen_of(routed(None, reason="x", rx_bps=5e6, tx_bps=9e6), {}), "a: no-route"),
    "a route that forbids": (seen_of(FORBIDDEN, {}, paths=(whole(heard=set(), **REFUSING),)), "a: route-forbids"),
    "eth0 is in a bond": (seen_of(routed("bond0", above=frozenset({"bond0"})), {}),),
    "two nodes are one interface": (seen_of({}, HOST, HOST, paths=SOUND),),
    "two nodes are one address": (seen_of({}, HOST, HOST | {"address": "10.0.0.2"}, paths=SOUND),),
    "two hosts have one address": (seen_of(*MACS, HELD_TWICE, paths=TO_BOTH), "b, c: address-shared"),
    "loopback among hosts": (seen_of({"boot_id": "y"}, LO, paths=TO_BOTH[:2]), "b: address-loopback"),
    "loopback of one host": (seen_of(LO, LO, paths=SOUND),),
    "another host answers": (answered("0f"), "a: neighbour-other"),
    "nobody answers": (answered(None), "a: neighbour-silent"),
    "down, and what follows": (seen_of({}, {"up": False}, paths=(whole(**DROPPED), SILENT)), "b: link-down"),
    "no free port": (seen_of({"deaf": "listen: none"}, {}), "a: no-free-port"),
    "no root": (seen_of({"uid": 1000}, {}, plan=JUMBO), "a: no-root"),
    "not loaded": (seen_of({}, {}, plan=BBR), "a, b: congestion-missing"),
    "loadable": (seen_of(LOADABLE, LOADABLE, plan=BBR),),
    "unlike": (seen_of({}, {}, {"sysctls": RENO}), "c: congestion-unlike"),
    "no usual value": (seen_of({"mtu": 9000}, {"sysctls": RENO}), "a, b: mtus-differ", "a, b: congestions-differ"),
    "no window scaling": (seen_of({}, OFF, paths=LATE, rate=10**7), "b: window-scaling-off"),
    "no window scaling for datagrams": (seen_of({}, OFF, plan=plan_with(UDP)),),
    "no folder": (on_disk(Disk("/data", None)), "a: no-folder"),
    "in memory": (on_disk(Disk("/data", 10**12, in_memory=True)), "a: folder-in-memory"),
    "full": (on_disk(Disk("/data", 10**9)), "a: folder-full"),
    "files of two nodes": (SHARED_DISK, "a, b: folder-full"),
    "files of two disks": (seen_of(ON_X, ON_Y, plan=plan_with(FILE)),),
    "files only received": (seen_of(ON_X | HALF_FREE, {}, plan=plan_with(replace(FILE, settings=WRITTEN))),),
    "no iperf3": (seen_of({"iperf3": "3.12"}, {}, {}, plan=plan_with(cell(engine="iperf3"))), "b: no-iperf3"),
    "a condition's congestion control": (seen_of({}, LOADABLE, plan=OF_BBR), "a: congestion-missing"),
    "an address that is not there": (seen_of({"deaf": "listen: bind x (EADDRNOTAVAIL)"}, {}), "a: address-absent"),
    "two families": (seen_of({}, {"address": "fd00::1"}, {}), "b: address-families"),
    "a firewall that lets answers in": (seen_of({}, {}, paths=(whole(), whole("b", "a", **DROPPED)), plan=FORWARD),),
    "a firewall at the other end": (
        seen_of({}, {}, paths=(whole(**DROPPED), whole("b", "a")), plan=FORWARD),
        "a -> b: port-dropped",
    ),
    "a firewall without a scenario": (
        seen_of({}, {}, paths=(whole(), whole("b", "a", **DROPPED))),
        "b -> a: port-dropped",
    ),
    "a black hole below the segments": (
        seen_of({}, {}, paths=(HOLE, whole("b", "a")), plan=FORWARD),
        "a -> b: black-hole",
    ),
    "what a node refuses": (rehearsed("placement: processor 9", 1, 2), "a: rehearsal-refused"),
    "what a rule says too": (
        rehearsed("bind to the data address: none (EADDRINUSE)", 1, deaf="listen: none"),
        "a: no-free-port",
    ),
    "one that all fail to reach": (seen_of(*[{"mtu": 9000}] * 8, paths=(*UNHEARD, whole("h", "a"))), FAR),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_found_is_told_once_and_what_is_in_order_is_not(name: str) -> None:
    state, *found = CASES[name]
    assert codes(state) == found


def test_large_packets_that_no_test_sends_may_vanish() -> None:
    small = plan_with(cell(settings=Settings({MSS: 500})))
    backwards = whole("b", "a", heard={128, 1000}, lost={1001, 9000})
    (warning,) = bad(seen_of({}, {}, paths=(HOLE, whole("b", "a")), plan=small))
    assert (warning.code, warning.level) == ("black-hole", Severity.WARNING)
    assert codes(seen_of({}, {}, paths=(whole(), backwards), plan=FORWARD)) == []


def test_a_rehearsal_names_the_tests_that_a_refusal_costs_and_says_what_it_left_out() -> None:
    (refused,) = bad(rehearsed("placement: processor 9", 1, 2))
    assert refused.text.endswith("Cannot be measured: tests 1, 2.")
    assert refused.numbers == {"tests": "1, 2"}
    state = seen_of({}, {}, plan=FORWARD)
    unsure = Rehearsal(1, 2, (Refusal("a", "bind: no port (EADDRINUSE)", (), (2,)),))
    found = judge_state(replace(state, rehearsal=unsure))
    assert {finding.code: finding.level for finding in found if finding.code.startswith("rehears")} == {
        "rehearsal-unsure": Severity.WARNING,
        "rehearsed-in-part": Severity.NOTE,
    }
    (done,) = (each for each in judge_state(replace(state, rehearsal=Rehearsal(1, 1))) if each.code == "rehearsed")
    assert done.level is Severity.OK


@pytest.mark.parametrize(
    ("settings", "untried"),
    [
        ((HostSetting("mtu", "9001"),), "packets of 9001 bytes between the nodes"),
        ((HostSetting("mtu", "1500"), HostSetting("sysctl", "0", "net.ipv4.tcp_sack")), None),
        ((HostSetting("qdisc", "fq"),), None),
        (
            (HostSetting("sysctl", "9", "net.core.rmem_max"), HostSetting("coalesce", "5", "rx_usecs")),
            "the value of net.core.rmem_max, the value of coalesce rx_usecs",
        ),
        ((HostSetting("qdisc", "fq limit 100"),), "the parameters of qdisc fq limit 100"),
        ((HostSetting("sysctl", "bbr", "net.ipv4.tcp_congestion_control"), HostSetting("rings", "9", "rx")), None),
    ],
)
def test_a_check_lists_what_only_a_change_of_a_node_would_tell(
    settings: tuple[HostSetting, ...], untried: str | None
) -> None:
    plan = plan_with(cell(condition="one"), conditions=(Condition("one", settings),))
    state = replace(seen_of({}, {}, plan=plan), rehearsal=Rehearsal(1, 1))
    found = [finding for finding in judge_state(state) if finding.code == "not-rehearsed"]
    assert [finding.level for finding in found] == ([] if untried is None else [Severity.NOTE])
    assert all(f"would tell: {untried}." in finding.text for finding in found)


def test_a_setting_that_needs_root_is_refused_once() -> None:
    denied = "condition one: set: sysctl net.core.rmem_max: Permission denied (EACCES)"
    plan = plan_with(cell(condition="one"), conditions=(Condition("one", (HostSetting("mtu", "1400"),)),))
    state = seen_of({"uid": 1000, "refused": (denied,)}, {"uid": 0, "refused": (denied,)}, plan=plan)
    assert codes(state) == ["a: no-root", "b: condition-refused"]


def test_a_wrong_clock_and_a_node_that_answers_for_another_are_named() -> None:
    (clock,) = bad(seen_of({"clock_ahead_s": (-7.4, -7.1)}, {"clock_ahead_s": (-0.2, 1.9)}))
    assert (clock.code, clock.numbers) == ("clock-off", {"clock_ahead_s": -7.1})  # the least that it is off
    assert codes(answered("0c"))[0] == "a: neighbour-other"
    assert {finding.code for finding in bad(answered("0b"))} == {"port-dropped"}


SLOW_SLOT = {"pcie": {"speed_gts": 2.5, "width": 1, "speed_max_gts": 5, "width_max": 4}, "speed_bps": 10**10}


FREEBSD: dict[str, Any] = {"kernel": "FreeBSD 14.1-RELEASE amd64", "interface": "ix0", "sysctls": {}}
ROUTED = FREEBSD | routed("em0", "192.168.1.1")


@pytest.mark.parametrize(
    ("facts", "code", "remedy"),
    [
        ({"up": False}, "link-down", "ip link set dev eth0 up"),
        ({"carrier": 0}, "no-carrier", "cable"),
        ({"speed_bps": 10**8}, "link-slow", "ethtool eth0"),
        ({"duplex": "half"}, "half-duplex", "autoneg on"),
        ({"interface": None}, "interface-unknown", "data_interface"),
        (SLOW_SLOT, "pcie-slow", "faster slot"),
        ({"throttled": ["under-voltage now"]}, "throttled", "power supply"),
        (FORBIDDEN, "route-forbids", "On the node, as root: ip route del prohibit 10.0.0.2"),
        (FREEBSD | {"up": False}, "link-down", "ifconfig ix0 up"),
        (FREEBSD | {"carrier": 0}, "no-carrier", "Look at cable"),
        (FREEBSD | {"duplex": "half"}, "half-duplex", "media autoselect"),
        (FREEBSD | {"speed_bps": 10**8}, "link-slow", "ifconfig -m ix0"),
        (ROUTED, "route-elsewhere", "route add -host 10.0.0.2 -interface ix0 -ifa 10.0.0.1"),
    ],
)
def test_what_is_wrong_with_a_node_is_named_with_what_mends_it(facts: dict[str, Any], code: str, remedy: str) -> None:
    state = seen_of(facts, {}, rate=25 * 10**8 if facts is SLOW_SLOT else 10**9)
    (finding,) = [each for each in bad(state) if each.code == code]
    assert finding.subject.names == ("a",)
    assert remedy in (finding.remedy or "")


LACP: dict[str, Any] = {"mode": "802.3ad", "hash": "layer2", "cards": 2, "card_bps": 10**9, "total_bps": 2 * 10**9}


@pytest.mark.parametrize(
    ("bond", "rate", "codes", "most"),
    [
        (LACP, 2 * 10**9, ["bond"], "1 Gbit/s at most"),
        (LACP | {"hash": "layer3+4"}, 10**9, ["bond"], "2 Gbit/s at most"),  # the rate of one card is no mistake
        (LACP | {"hash": "layer3+4"}, 10**8, ["link-fast", "bond"], "2 Gbit/s at most"),
        (LACP | {"mode": "balance-rr"}, 2 * 10**9, [], None),
        (LACP | {"mode": "active-backup", "total_bps": 10**9}, 10**9, [], None),
    ],
)
def test_a_bond_says_what_one_flow_gets_of_it(bond: Any, rate: int, codes: list[str], most: str | None) -> None:
    found = bad(seen_of({"bond": bond, "speed_bps": bond["total_bps"]}, {}, rate=rate), *Severity)
    own = [each for each in found if each.subject.names == ("a",) and each.code in ("bond", "link-fast", "link-slow")]
    assert [each.code for each in own] == codes
    assert all(most in each.text for each in own if most and each.code == "bond")


def test_offloads_that_no_command_changes_are_not_advised() -> None:
    fixed: dict[str, Any] = {"offloads": {"rx": False, "tso": False}, "offloads_fixed": {"rx": "off"}}
    (found,) = bad(seen_of(fixed, {}, rate=10**10), Severity.WARNING, Severity.NOTE)
    assert found.remedy == "On the node, as root: ethtool -K eth0 tso on"
    assert not bad(seen_of(fixed | {"offloads": {"rx": False}}, {}, rate=10**10), Severity.WARNING, Severity.NOTE)


def test_offloads_rings_and_interrupts_of_a_fast_card_are_looked_at() -> None:
    facts = {
        "offloads": {"tso": False, "gro": True},
        "rings": {"rx": 256, "rx_max": 4096, "tx": 4096, "tx_max": 4096},
        "coalescing": {"rx-usecs": "0", "adaptive-rx": "off"},
        "governor": "powersave",
    }
    found = bad(seen_of(facts, {}, rate=10**10), Severity.WARNING, Severity.NOTE)
    assert [finding.remedy for finding in found] == [
        "On the node, as root: ethtool -K eth0 tso on",
        "On the node, as root: ethtool -G eth0 rx 4096",
        "On the node, as root: ethtool -C eth0 adaptive-rx on",
        "On the node, as root: cpupower frequency-set -g performance; or use a condition with governor: performance",
    ]


def test_an_unreachable_node_is_an_error_and_the_same_words_of_several_are_one_finding() -> None:
    state = seen_of({"mtu": 1400}, {"mtu": 1400}, {"failure": Failure("ssh", "no answer")}, {}, {})
    assert codes(state) == ["c: unreachable", "a, b: mtu-unlike"]
    assert check_answer(judge_state(state), 5) == "1 error and 1 warning on 5 nodes: mend the errors before a run."


@pytest.mark.parametrize(("rate", "count"), [(10**8, 0), (10**9, 1), (None, 1)])
def test_offloads_that_are_off_are_named_where_the_link_is_fast_enough(rate: int | None, count: int) -> None:
    assert len(codes(seen_of({"offloads": {"gro": False}}, {}, rate=rate), Severity.NOTE)) == count


def test_ends_of_two_families_are_an_error_of_their_pair_only() -> None:
    plan = plan_with(cell(pairs=(Pair("a", "b"), Pair("a", "c"))))
    (finding,) = check_families(seen_of({}, {"address": "fd00::2"}, {}, plan=plan))
    assert (finding.code, finding.subject.names) == ("address-families", ("a -> b",))


def test_a_mac_address_that_two_nodes_have_is_the_cause_of_what_is_dropped_between_them() -> None:
    def of(path: PathState, boots: tuple[str, str]) -> list[tuple[str, Severity]]:
        b, c = ({"mac": "0b", "boot_id": boot, "addresses": [boot + str(at)]} for at, boot in enumerate(boots))
        around = Surroundings({"10.0.0.3": Route("10.0.0.3", "eth0")})
        found = bad(seen_of({}, b | {"around": around}, c, paths=(path, whole("a", "b"))))
        return [(finding.code, finding.level) for finding in found if finding.subject.names == ("b", "c")]

    named = "mac-shared"
    assert of(whole("b", "c", **DROPPED), ("x", "x")) == [(named, Severity.ERROR)]
    assert of(whole("b", "c"), ("x", "y")) == [(named, Severity.WARNING)]
    assert of(whole("b", "c"), ("x", "x")) == []  # ipvlan: interfaces of one host, rightly


def test_an_icmp_error_of_the_senders_own_is_its_unanswered_arp_and_no_firewall() -> None:
    own = Icmp("EHOSTUNREACH", 3, 1, None, "10.0.0.1")
    (finding,) = bad(seen_of({}, {}, paths=(whole(heard=set(), icmp={own}, stream="EHOSTUNREACH"),)))
    assert finding.code == "port-unresolved"
    assert "nft" not in (finding.remedy or "")


def test_a_senders_own_firewall_is_looked_for_on_the_sender_also_for_the_answers_that_it_drops() -> None:
    out = whole(heard=set(), lost={9000}, stream=None, refused={128: "EPERM"})
    back = whole("b", "a", stream=None)
    for finding in bad(seen_of({"mtu": 9000}, {"mtu": 9000}, paths=(out, back))):
        assert (finding.remedy or "").startswith("On a, as root: nft list ruleset")


def test_udp_that_is_dropped_is_an_error_only_where_a_test_uses_it() -> None:
    paths = (whole(heard=set(), lost={128, 9000}), whole("b", "a"))
    plans = (None, plan_with(cell()), plan_with(UDP))
    levels = [[finding.level for finding in bad(seen_of({}, {}, paths=paths, plan=plan))] for plan in plans]
    assert levels == [[Severity.WARNING], [Severity.WARNING], [Severity.ERROR]]


def test_windows_above_the_limits_and_buffers_below_rate_times_round_trip_are_named() -> None:
    plan = plan_with(cell(1, settings=Settings({WINDOW: 65536})), cell(2, settings=Settings({WINDOW: 4 << 20})))
    cut = bad(seen_of({}, {}, plan=plan))[0]
    assert (cut.code, cut.numbers) == ("window-cut", {"limit_bytes": 212992, "wanted_bytes": 4 << 20})
    far = whole(rtt_us=100_000)
    (receive, send) = bad(seen_of({}, {}, paths=(far,), plan=plan_with(cell())))
    assert receive.numbers["one_flow_mbps"] == pytest.approx(6291456 / 2 * 8 / 0.1 / 1e6, abs=0.1)
    assert "net.ipv4.tcp_wmem" in (send.remedy or "")
    lifted = Condition("wide", (HostSetting("sysctl", "4096 131072 67108864", "net.ipv4.tcp_rmem"),))
    plan = plan_with(cell(condition="wide"), conditions=(lifted,))
    (send,) = bad(seen_of({}, {}, paths=(far,), plan=plan))
    assert "net.ipv4.tcp_wmem" in (send.remedy or "")


def test_buffers_much_smaller_than_another_nodes_are_named_though_the_idle_round_trip_is_short() -> None:
    small = {"sysctls": {**SYSCTLS, "net.ipv4.tcp_rmem": "4096 16384 65536"}}
    (finding,) = bad(seen_of({}, small, {}, paths=(whole(rtt_us=20),)))
    assert (finding.code, finding.subject.names) == ("buffers-unlike", ("b",))
    assert finding.remedy == "On the node, as root: sysctl -w net.ipv4.tcp_rmem='4096 16384 6291456'"


REFUSED = Icmp("EHOSTUNREACH", 3, 13, None, "10.0.0.9")
TOO_BIG = Icmp("EMSGSIZE", 3, 4, 1500, "10.0.0.9")
LOST: dict[str, Any] = {"heard": {128, 1500}, "lost": {1501, 9000}}


@pytest.mark.parametrize(
    ("change", "level", "code"),
    [
        ({"heard": set(), "stream": None}, "error", "port-dropped"),
        ({"heard": set(), "stream": None, "refused": {128: "EPERM"}}, "error", "port-own-firewall"),
        ({"heard": set(), "icmp": {REFUSED}}, "warning", "port-rejected"),
        ({"stream": "ECONNREFUSED"}, "error", "port-rejected"),
        (LOST, "error", "black-hole"),
        ({**LOST, "icmp": {TOO_BIG}}, "warning", "path-mtu"),
        ({"heard": {128, 1500}, "refused": {1501: "EPERM", 9000: "EPERM"}}, "error", "packets-refused"),
    ],
)
def test_a_path_is_judged_by_what_became_of_its_probes(change: dict[str, Any], level: str, code: str) -> None:
    state = seen_of({"mtu": 9000}, {"mtu": 9000}, paths=(whole(**change), whole("b", "a")))
    (finding,) = bad(state)
    assert (finding.level.value, finding.code, finding.subject.names) == (level, code, ("a -> b",))


def test_multipath_tcp_that_a_node_lacks_is_told_to_those_who_ask_for_it() -> None:
    on, off = ({"sysctls": {**SYSCTLS, "net.mptcp.enabled": value}} for value in "10")
    asks, turns_on = (
        cell(settings=Settings({MPTCP: True}), condition="on"),
        HostSetting("sysctl", "1", "net.mptcp.enabled"),
    )

    def told(node: dict[str, Any], *settings: HostSetting, cell: Cell = asks) -> list[tuple[Severity, str]]:
        plan = plan_with(cell, conditions=(Condition("on", settings),))
        return [(each.level, each.code) for each in judge_state(seen_of(on, node, plan=plan)) if "mptcp" in each.code]

    assert told(off) == [(Severity.WARNING, "mptcp-off")]
    assert told({}) == [(Severity.ERROR, "mptcp-missing")]
    assert told(off, turns_on) == told(on) == told(off, cell=cell()) == told({}, cell=cell()) == []


def test_the_sizes_of_ipv6_count_its_longer_header() -> None:
    found = judge_state(seen_of({}, {}, paths=(whole(version=6),)))
    assert [each.numbers.get("icmp_payload_bytes") for each in found if "path_mtu_bytes" in each.numbers] == [8952]


def test_a_sound_freebsd_node_among_linux_nodes_has_one_note_of_what_is_not_checked() -> None:
    levels = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    (note,) = bad(seen_of({}, FREEBSD, FREEBSD, paths=(whole(), whole("b", "a"))), *levels)
    assert note.level is Severity.NOTE
    assert (note.code, note.subject.names) == ("unchecked", ("b", "c"))


def test_packets_that_a_freebsd_sender_loses_are_no_black_hole_for_certain() -> None:
    path = whole(wanted=9000, heard={128, 1500}, lost={9000})
    (lost,) = bad(seen_of(FREEBSD, {}, paths=(path,)))
    assert (lost.level, lost.code) == (Severity.WARNING, "path-mtu-untold")
    assert [hole.level for hole in bad(seen_of({}, FREEBSD, paths=(path,)))] == [Severity.ERROR]


def test_mtu_and_firewall_of_a_freebsd_node_are_mended_with_its_own_tools() -> None:
    (mtu,) = bad(seen_of({}, FREEBSD | {"mtu": 9000}, {}))
    assert (mtu.code, mtu.subject.names) == ("mtu-unlike", ("b",))
    assert "ifconfig ix0 mtu 1500" in (mtu.remedy or "")
    (firewall,) = bad(seen_of({}, FREEBSD, paths=(whole(**DROPPED),)))
    assert "pfctl -s rules; ipfw list" in (firewall.remedy or "")


WINDOWS: dict[str, Any] = {"kernel": "Windows 10.0.19045 windows-x86_64", "interface": "LAN 2", "sysctls": None}
WINDOWS |= {"uid": None, "driver_date": "2999-01-01", "power_plan": "High performance", "administrator": True}


def test_a_sound_windows_node_among_linux_nodes_has_one_note_of_what_is_not_checked() -> None:
    levels = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    jumbo = replace(JUMBO, cells=(replace(JUMBO.cells[0], pairs=(Pair("a", "b"),)),))
    state = seen_of({}, WINDOWS, WINDOWS, paths=SOUND, plan=jumbo)
    assert codes(state, *levels) == ["b, c: unchecked"]
    unknown = dict.fromkeys(("driver_date", "power_plan", "administrator", "firewall", "mtu", "up", "carrier"))
    assert codes(seen_of({}, WINDOWS | unknown, paths=SOUND, plan=jumbo), *levels) == ["b: unchecked"]


def test_what_is_wrong_with_a_windows_node_is_mended_with_its_own_tools() -> None:
    agent = "C:\\Users\\lab\\AppData\\Local\\rigctl\\agent-1.exe"
    faults = {"driver": "mlx5", "driver_version": "2.6", "driver_date": "2021-03-04", "power_plan": "Balanced"}
    walled = faults | {"firewall": {"domain": False, "private": True}, "program": agent, "mtu": 9000}
    state = seen_of({}, WINDOWS | walled | {"administrator": False}, {}, paths=(whole(**DROPPED),), plan=JUMBO)
    found = {finding.code: finding for finding in bad(state)}
    assert found.keys() == {"firewall-inbound", "mtu-unlike", "driver-old", "power-plan", "no-administrator"}
    assert found["mtu-unlike"].remedy == (
        'On the node, as administrator: Set-NetAdapterAdvancedProperty -Name "LAN 2" '
        "-RegistryKeyword *JumboPacket -RegistryValue 1514 (PowerShell; 1514 is the frame size for MTU 1500)"
    )
    opens = f'netsh advfirewall firewall add rule name="rigctl agent" dir=in action=allow program="{agent}"'
    assert opens in (found["firewall-inbound"].remedy or "")
    assert "the firewall of b is on (private)" in found["firewall-inbound"].text
    assert "mlx5 2.6, is of 2021-03-04" in found["driver-old"].text
    (lost,) = bad(seen_of(WINDOWS, {}, paths=(whole(heard={128, 1500}, lost={9000}),)))
    assert (lost.code, "Windows does not" in lost.text) == ("path-mtu-untold", True)


LINUX_ONLY = ("net.core", "net.ipv4", "ethtool", "/proc", "modprobe", "ip link", "ss -", "nft", "cpupower", "systemctl")
OWN_MAC = {"mac": "02:00:00:00:00:0b", "boot_id": "1"}


@pytest.mark.parametrize(
    ("asked", "cut"), [(64 << 10, False), (1_864_135, False), (1_864_136, True), (4 << 20, True), (64 << 20, True)]
)
def test_a_window_above_freebsds_bound_is_told_with_the_bound_that_grants_it(asked: int, cut: bool) -> None:
    facts = FREEBSD | {"sysctls": {"kern.ipc.maxsockbuf": "2097152"}}
    state = seen_of({}, facts, plan=plan_with(replace(cell(), settings=Settings({WINDOW: asked}))))
    found = [finding for finding in bad(state) if finding.subject.names == ("b",)]
    assert [finding.code for finding in found] == (["window-cut"] if cut else [])
    for finding in found:
        (raised,) = [int(word.partition("=")[2]) for word in (finding.remedy or "").split() if "maxsockbuf=" in word]
        assert raised * 2048 // 2304 >= asked


@pytest.mark.parametrize("facts", [FREEBSD, WINDOWS])
def test_no_command_and_no_setting_of_linux_is_named_for_another_system(facts: dict[str, Any]) -> None:
    """All that can be wrong with a node, at once."""
    wrong = facts | {"mtu": 9000, "duplex": "half", "speed_bps": 10**8, "offloads": {"tso": False}}
    wrong |= {"pcie": {"speed_gts": 2.5, "width": 1}, "clock_ahead_s": (9.0, 9.0), "deaf": "no port is free"}
    plan = plan_with(replace(cell(), settings=Settings({WINDOW: 1 << 30})))
    state = seen_of(wrong | OWN_MAC, wrong | OWN_MAC | {"boot_id": "2"}, paths=(whole(**DROPPED),), plan=plan)
    found = bad(state, Severity.ERROR, Severity.WARNING, Severity.NOTE)
    assert {"no-free-port", "mac-shared", "half-duplex", "link-slow", "clock-off"} <= {each.code for each in found}
    told = [f"{finding.text} {finding.remedy or ''}" for finding in found]
    assert not [text for text in told for word in LINUX_ONLY if word in text]


LINE = 'Set-NetAdapterAdvancedProperty -Name "LAN 2" -RegistryKeyword "*InterruptModeration" -RegistryValue 0'


@pytest.mark.parametrize(
    ("refusal", "text", "remedy"),
    [
        (f"coalesce: no; in PowerShell, as administrator: {LINE}", "coalesce: no.", f"as administrator: {LINE}"),
        ("rings rx: Invalid argument; the card takes 96", "rings rx: Invalid argument; the card takes 96.", None),
    ],
)
def test_a_refused_condition_is_told_with_the_exact_command_if_there_is_one(
    refusal: str, text: str, remedy: str | None
) -> None:
    (found,) = bad(seen_of({}, WINDOWS | {"refused": (refusal,)}))
    assert (found.code, found.text) == ("condition-refused", f"b: {text}")
    assert found.remedy == (None if remedy is None else f"On the node, in PowerShell, {remedy}")


@pytest.mark.parametrize(
    ("facts", "command"), [(FREEBSD, "ifconfig ix0 mtu 1500 on b"), (WINDOWS, '"LAN 2"'), ({}, "")]
)
def test_a_black_hole_to_another_system_is_mended_at_both_ends(facts: dict[str, Any], command: str) -> None:
    lost = whole(heard={128, 1500}, lost={9000})
    (hole,) = [finding for finding in bad(seen_of({}, facts, paths=(lost,))) if finding.code == "black-hole"]
    assert command in (hole.remedy or "")
    assert ("ip link set dev eth0 mtu 1500 on a" in (hole.remedy or "")) == bool(facts)


@pytest.mark.parametrize(
    ("date", "provider", "old"),
    [
        ("2006-06-21", None, False),  # of Windows itself, in any language
        ("2006-06-21", "Microsoft", False),
        ("2015-01-01", "Microsoft", False),
        ("2021-03-04", "Intel", True),
        ("2006-06-20", "Realtek", True),
        ("2999-01-01", "Intel", False),
        (None, None, False),
    ],
)
def test_drivers_of_microsoft_are_not_called_old(date: str | None, provider: str | None, old: bool) -> None:
    state = seen_of({}, WINDOWS | {"driver_date": date, "driver_provider": provider})
    assert [finding.code for finding in bad(state)] == (["driver-old"] if old else [])


ALL_OFF = {"domain": False, "private": False, "public": False}


@pytest.mark.parametrize(
    ("firewall", "code", "named"),
    [
        (ALL_OFF, "firewall-other", "a firewall other than Microsoft's"),
        (ALL_OFF | {"private": True}, "firewall-inbound", "is on (private)"),
        ({"domain": False}, "port-dropped", "dropped without an answer"),  # the other profiles are unknown
        (None, "port-dropped", "dropped without an answer"),
    ],
)
def test_a_filtered_port_is_blamed_on_the_firewall_that_can_be_on(firewall: Any, code: str, named: str) -> None:
    state = seen_of({}, WINDOWS | {"firewall": firewall}, paths=(whole(**DROPPED),))
    (found,) = bad(state)
    assert (found.code, named in found.text) == (code, True)
    assert (code == "firewall-other") == ("Windows Security" in (found.remedy or ""))


@pytest.mark.parametrize(("facts", "system"), [(FREEBSD, "FreeBSD"), (WINDOWS, "Windows")])
def test_what_nobody_has_tried_is_said_in_the_same_words(facts: dict[str, Any], system: str) -> None:
    state = seen_of({}, facts)
    assert codes(state, Severity.NOTE) == ["b: unchecked"]
    (note,) = bad(state, Severity.NOTE)
    assert f"{system} nodes are experimental ({said.PROOF[system]})" in note.text


# Interrupts, NUMA nodes, idle states and pause frames: a set of cases to tune the rules on, one to prove them.
# A case is the facts of node a, what the scenario asks for, and the codes of the findings on a. The second set was
# written before the rules were run on the first; two of its cases, made-up NUMA nodes and another sender, came later,
# each for a mistake that the others had missed.

TWO_SOCKETS = {"numa_processors": {"0": "0-15,32-47", "1": "16-31,48-63"}, "numa_node": 0, "speed_bps": 25 * 10**9}
QUEUES = {"interrupt_processors": "0-15,32-47", "rx_queues": 32, "rps": "off", "allowed_processors": "0-63"}
C6 = {"idle_state": "C6", "idle_latency_us": 133, "dma_latency_us": 2_000_000_000}
MLX5: dict[str, Any] = {**TWO_SOCKETS, **QUEUES, **C6, "pause": {"rx": True, "tx": True}}
IXGBE: dict[str, Any] = {**MLX5, "numa_node": 1, "speed_bps": 10**10, "interrupt_processors": "16-31", "rx_queues": 16}
ONE_QUEUE = {"interrupt_processors": "0", "rx_queues": 1, "rps": "off", "allowed_processors": "0-3"}
PI5: dict[str, Any] = {**ONE_QUEUE, "numa_processors": {"0": "0-3"}, "speed_bps": 10**9}
DEEPER: dict[str, Any] = {"idle_state": "C10", "idle_latency_us": 890}
LAPTOP: dict[str, Any] = {**PI5, **DEEPER, "numa_node": 0, "interrupt_processors": "5"}
GUEST: dict[str, Any] = {**PI5, "speed_bps": None, "interrupt_processors": "0-1", "rx_queues": 2}
ONE = "interrupts-on-one"
APART = "numa-far"
SPANS = "numa-several"
DEEP = "idle-state"
PAUSE = "pause-ignored"
EEE = "eee"
CABLE = "link-below-offer"


@dataclass(frozen=True)
class Case:
    name: str
    facts: dict[str, Any]
    findings: tuple[str, ...] = ()
    cell: dict[str, Any] | None = field(default_factory=dict)  # None: a check without a scenario
    condition: tuple[HostSetting, ...] = ()
    to_b: PortCounters | None = None  # of the switch's port to node b
    rate_bps: int | None = None  # of the rig file


def placed(placement: str | None) -> dict[str, Any]:
    return {"settings": Settings({PLACEMENT: placement})}


NIC, PACKETS = placed("nic"), placed("packets")
PINGPONG: dict[str, Any] = {"test": "pingpong"}
BACK: dict[str, Any] = {"pairs": (Pair("b", "a"),)}
LOADED: dict[str, Any] = {"latency_ms": 20, **NIC}
CHANNELS = HostSetting("channels", "8", "combined")
ON_0, MADE_UP = {"interrupt_processors": "0"}, {"0": "0-3", "1": "0-3"}
LOSSY = PortCounters(0, out_packets=10**7, out_discards=5000)
FEW_LOST = PortCounters(0, out_packets=10**9, out_discards=3)
DEAF = {"pause": {"rx": False, "tx": True}}
SLEEPING = {"eee": "active"}
HALF_A_CABLE = {"speed_bps": 10**8, "offered_bps": 10**9}

TUNED = (
    Case("interrupts of mlx5 on one processor", {**MLX5, "interrupt_processors": "3"}, (ONE,), NIC),
    Case("interrupts of mlx5 on its node", MLX5, (), NIC),
    Case("one queue, of ixgbe", {**IXGBE, "interrupt_processors": "16", "rx_queues": 1}, (ONE,), None),
    Case("one interrupt, at 1 Gbit/s", PI5),
    Case("the scheduler may take either node", MLX5, (SPANS,)),
    Case("a list on the other node", MLX5, (APART,), placed("16-31")),
    Case("a list on the card's node", IXGBE, (), placed("16-31")),
    Case("a cpuset on the other node", {**MLX5, "allowed_processors": "16-31"}, (APART,)),
    Case("deep idle states and ping-pong", LAPTOP, (DEEP,), PINGPONG),
    Case("deep idle states and a stream", LAPTOP),
    Case("a lossy switch and a deaf card", {**PI5, **DEAF}, (PAUSE,), to_b=LOSSY),
    Case("a lossy switch and a card that heeds", {**PI5, "pause": {"rx": True}}, to_b=LOSSY),
)
PROOF = (
    Case("RPS spreads what one processor gets", {**IXGBE, "interrupt_processors": "16", "rps": "16-19"}, (), NIC),
    Case("the condition gives channels", {**MLX5, "interrupt_processors": "3"}, (), NIC, condition=(CHANNELS,)),
    Case("negotiated at 1, the rig file has 10", {**LAPTOP}, rate_bps=10**10),
    Case("a guest whose rate only the rig file knows", {**GUEST, "interrupt_processors": "1"}, (ONE,), rate_bps=10**10),
    Case("a machine with one processor", {**GUEST, "numa_processors": {"0": "0"}, **ON_0}, rate_bps=10**10),
    Case("packets, the interrupts on the other node", {**IXGBE, "interrupt_processors": "0-7"}, (APART,), PACKETS),
    Case("a sender's list, of which this is the receiver", MLX5, (SPANS,), {**placed("16-31/scheduler"), **BACK}),
    Case("a list over both nodes", MLX5, (SPANS,), placed("0-31")),
    Case("deep idle states and probes under load", MLX5, (DEEP,), LOADED),
    Case("idle states held by tuned", {**LAPTOP, "dma_latency_us": 3}, (), PINGPONG),
    Case("busy polling does not sleep", LAPTOP, (), {**PINGPONG, "settings": Settings({BUSY_POLL: True})}),
    Case("C2 of 18 µs is not deep", {**LAPTOP, "idle_state": "C2", "idle_latency_us": 18}, (), PINGPONG),
    Case("three frames in a thousand million", {**PI5, **DEAF}, to_b=FEW_LOST),
    Case("the condition sets pause frames", {**PI5, **DEAF}, condition=(HostSetting("pause", "on", "rx"),), to_b=LOSSY),
    Case("it only receives from there", {**PI5, **DEAF}, (), BACK, to_b=LOSSY),
    Case("another node sends there", {**PI5, **DEAF}, (), {"pairs": (Pair("c", "b"), Pair("b", "a"))}, to_b=LOSSY),
    Case("iperf3 is not placed", MLX5, (), {"engine": "iperf3"}),
    Case("a lossy switch, without a scenario", {**PI5, **DEAF}, (PAUSE,), None, to_b=LOSSY),
    Case("NUMA nodes made up by firmware", {**MLX5, "numa_processors": MADE_UP, "allowed_processors": "0-3"}),
    Case("a link that sleeps, and ping-pong", {**PI5, **SLEEPING}, (EEE,), PINGPONG),
    Case("a link that sleeps, and datagrams", {**PI5, **SLEEPING}, (EEE,), {"test": "udp"}),
    Case("a link that sleeps, and probes under load", {**PI5, **SLEEPING}, (EEE,), {"latency_ms": 20}),
    Case("a link that sleeps, without a scenario", {**PI5, **SLEEPING}, (EEE,), None),
    Case("a link that sleeps, and a TCP stream", {**PI5, **SLEEPING}),
    Case("the condition keeps it awake", {**PI5, **SLEEPING}, (), PINGPONG, condition=(HostSetting("eee", "off"),)),
    Case("the other end does not let it sleep", {**PI5, "eee": "inactive"}, (), PINGPONG),
    Case("100 Mbit/s where both ends offer 1000", {**PI5, **HALF_A_CABLE}, (CABLE,)),
    Case("the same where the rig file has 100", {**PI5, **HALF_A_CABLE}, (CABLE,), rate_bps=10**8),
    Case("as fast as both ends offer", {**PI5, "offered_bps": 10**9}),
    Case("nothing is known", {}, (), PINGPONG, to_b=PortCounters(0), rate_bps=10**11),
)


def seen_in(case: Case) -> RigState:
    plan = None
    if case.cell is not None:
        made = {"test": "tcp", "pairs": (Pair("a", "b"),), "condition": "set", **case.cell}
        plan = plan_with(
            Cell(1, duration_s=1.0, omit_s=0.0, parallel=1, **made), conditions=(Condition("set", case.condition),)
        )
    state = seen_of(case.facts, {}, {}, plan=plan, rate=case.rate_bps)
    return replace(state, ports={"b": case.to_b} if case.to_b is not None else {})


KNOWN = (ONE, SPANS, APART, DEEP, PAUSE, EEE, CABLE)


@pytest.mark.parametrize("case", [*TUNED, *PROOF], ids=lambda case: case.name)
def test_each_case_has_its_findings_and_no_other(case: Case) -> None:
    found = [each for each in judge_state(seen_in(case)) if each.level is not Severity.OK]
    known = [each for each in found if each.code in KNOWN]
    assert tuple(each.code for each in known) == case.findings
    assert [each.subject.names for each in known if each.remedy] == [("a",)] * len(known)


def test_findings_name_what_was_measured_and_what_mends_it() -> None:
    def judged_on(facts: dict[str, Any], cell: dict[str, Any]) -> list[Finding]:
        return [each for each in judge_state(seen_in(Case("", facts, (), cell))) if each.level is not Severity.OK]

    (interrupts,) = judged_on(MLX5 | {"interrupt_processors": "3"}, placed("nic"))
    assert interrupts.numbers == {"processor": 3, "rx_queues": interrupts.numbers["rx_queues"]}
    assert interrupts.remedy == "On the node, as root: systemctl start irqbalance; or use a condition with rps: all"
    (apart,) = judged_on(MLX5, placed("16-19"))
    assert (apart.code, apart.numbers) == (APART, {"card_numa_node": 0})
