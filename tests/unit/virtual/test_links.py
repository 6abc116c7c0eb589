"""From a rig file to its rig: shaped links, addresses, ports, who answers SNMP; and the folder that holds its state."""

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from known import known

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import Process, process
from rigctl.records import Link, Port, Trunk
from rigctl.rig.inventory import Node, Rig, Secrets, Snmp, Switch
from rigctl.virtual import links
from rigctl.virtual import state as state_module
from rigctl.virtual.layout import Bridge, Layout, Place
from rigctl.virtual.links import burst_bytes, node_lines, port_shaping_lines, shaper_bps, switch_lines
from rigctl.virtual.provide import complete, layout_of
from rigctl.virtual.snmpd import answer_snmpd, discards
from rigctl.virtual.state import State, base, find_running, new_folder, read, sweep

MTUS = dict.fromkeys(("pi1", "pi2", "a", "b", "near", "slow"), 1500)


def place(name: str = "pi1", number: int = 1, rate_bps: int | None = 10**9) -> Place:
    return Place(name, number, rate_bps, 1500)


def layout(*places: Place) -> Layout:
    return Layout("lab", "namespaces", 4, places or (place(), place("pi2", 2)))


def test_a_full_frame_takes_its_wire_time() -> None:
    published_mbps = {(1500, 1448): 941.482, (9000, 8948): 990.042, (1500, 1460): 949.285}
    found = {(mtu, payload): shaper_bps(10**9, mtu) / (mtu + 14) * payload / 1e6 for mtu, payload in published_mbps}
    assert found == pytest.approx(published_mbps, abs=0.001)


def test_the_bucket_holds_a_millisecond_and_never_less_than_a_few_frames() -> None:
    assert burst_bytes(10**9, 1500) == pytest.approx(123_000, rel=0.001)
    assert burst_bytes(10**9, 1500) > 65536 + 45 * 66  # a super-packet with the headers of its segments
    assert burst_bytes(10**6, 9000) == 4 * 9038
    assert burst_bytes(5 * 10**7, 1500) == 8 * 1538


@pytest.mark.parametrize("rate_bps", [10**6, 2 * 10**7, 5 * 10**7, 10**8])
def test_a_slow_links_bucket_takes_a_super_packet_whole(rate_bps: int) -> None:
    slow = place(rate_bps=rate_bps)
    largest = known(links.super_packet_bytes(rate_bps, 1500))
    assert f"link set dev eth0 gso_max_size {largest}" in list(node_lines(slow, ipv6=False))
    segments = largest // 1514
    assert segments >= 4
    assert segments * 1514 <= burst_bytes(rate_bps, 1500)  # as the queue counts it, headers of each


def test_both_ends_of_a_cable_are_shaped_alike_but_for_their_queues() -> None:
    (at_switch, _), (at_node,) = list(port_shaping_lines(layout(), MTUS)), list(links.node_shaping_lines(place(), 1500))
    assert at_switch.startswith("qdisc replace dev pi1 root tbf rate 984395318bit burst 123049b limit ")
    assert at_node.startswith("qdisc replace dev eth0 root tbf rate 984395318bit burst 123049b limit 1514000b")


def two_switches(trunk_bps: int | None = 8 * 10**9) -> Layout:
    places = (place("a", 1), replace(place("b", 2), bridge=1))
    bridges = (Bridge("br0", "f10", 9216), Bridge("br.1", "cisco", 9000))
    return Layout("lab", "namespaces", 4, places, bridges, trunk_bps)


def test_a_rig_of_one_switch_is_built_by_the_same_lines_as_ever() -> None:
    assert list(switch_lines(layout())) == [
        "link add name br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        "link add name pi1 mtu 1500 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:01 netns pi1",
        "link set dev pi1 master br0 up",
        "link add name pi2 mtu 1500 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:02 netns pi2",
        "link set dev pi2 master br0 up",
        "link set dev br0 mtu 1500 up",
    ]
    assert not any("trunk" in line for line in port_shaping_lines(layout(), MTUS))


@pytest.mark.parametrize(
    ("does", "snooping", "querier"), [("floods", "0", False), ("snoops", "1", False), ("queries", "1", True)]
)
def test_a_switch_floods_or_snoops_and_asks_only_where_it_is_the_querier(
    does: Any, snooping: str, querier: bool
) -> None:
    lines = list(switch_lines(replace(layout(), bridges=(Bridge("br0", multicast=does),))))
    assert lines[0].endswith(f"mcast_snooping {snooping}")
    asked = [line for line in lines if "querier" in line or "response" in line]
    assert ["mcast_querier 1" in line for line in asked] == ([False, True] if querier else [])


def test_two_bridges_with_their_ports_and_a_cable_between_them() -> None:
    lines = list(switch_lines(two_switches()))
    assert lines[1] == "link add name br.1 type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    # A switch's port lets pass what its node may be set to later; the node's own interface is as the rig file says.
    assert "link add name a mtu 9216 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:01 netns a" in lines
    assert "link set dev b master br.1 up" in lines
    assert "link add name trunk.0 mtu 9216 type veth peer name trunk.1 mtu 9000" in lines
    assert {"link set dev trunk.0 master br0 up", "link set dev trunk.1 master br.1 up"} <= set(lines)
    assert lines[-2:] == ["link set dev br0 mtu 9216 up", "link set dev br.1 mtu 9000 up"]


def test_a_trunk_is_shaped_at_both_ends_and_has_a_queue_of_its_own() -> None:
    lines = [line for line in port_shaping_lines(two_switches(), MTUS) if "trunk" in line]
    assert [line.split()[3] for line in lines] == ["trunk.0", "trunk.1"]
    # A millisecond, and 3.25 of them: at 7.875 Gbit/s 984 KB and 3.2 MB.
    assert all(f"rate {shaper_bps(8 * 10**9, 1500)}bit burst 984395b limit 3199284b" in line for line in lines)
    assert not any("trunk" in line for line in port_shaping_lines(two_switches(trunk_bps=None), MTUS))


def test_a_link_with_a_round_trip_is_two_taps_that_are_there_already() -> None:
    far = replace(place("far", 2), rtt_ns=5_000_000)
    made = list(switch_lines(layout(place("near"), far)))
    assert not any("name far " in line for line in made)
    assert {"link set dev far mtu 1500 txqueuelen 10000", "link set dev far master br0 up"} <= set(made)
    own = "link set dev eth0 mtu 1500 address 02:77:00:00:00:02 txqueuelen 10000"
    assert own in list(node_lines(far, ipv6=False))
    assert not any("txqueuelen" in line for line in node_lines(place("near"), ipv6=False))


COLUMN = ".1.3.6.1.2.1.2.2.1.19"
COUNTED = {2: 7, 5: 0, 11: 2**32 + 3}


def link(index: int, name: str, dropped: int) -> dict[str, Any]:
    """An interface as `ip -s -j link` prints it."""
    return {"ifindex": index, "ifname": name, "stats64": {"rx": {"dropped": 9}, "tx": {"dropped": dropped}}}


def queue(name: str, dropped: int, **more: Any) -> dict[str, Any]:
    """A queue as `tc -s -j qdisc` prints it."""
    return {"kind": "tbf", "handle": "8001:", "dev": name, "drops": dropped, **more}


def test_drops_of_interface_and_queue_are_both_discards() -> None:
    links = [link(4, "a", 3), link(5, "b", 0), link(6, "c", 2)]
    assert discards(links, [queue("a", 40, root=True), queue("b", 1, root=True)]) == {4: 43, 5: 1, 6: 2}
    assert discards([link(4, "a", 0)], [queue("a", 40, parent="8001:1")]) == {4: 0}  # its outer queue counts it


def test_snmpd_gets_a_counter_or_none() -> None:
    second, fifth = f"{COLUMN}.2\ncounter\n7", f"{COLUMN}.5\ncounter\n0"
    found = {".2": second, ".5": fifth, ".11": f"{COLUMN}.11\ncounter\n3"}  # 32 bits wrap
    found |= dict.fromkeys((".3", "", "9.2", ".2.1", ".-2"), "NONE")
    assert {last: answer_snmpd("get", f"{COLUMN}{last}", COUNTED) for last in found} == found
    following = {"": second, ".2": fifth, ".3": fifth, ".11": "NONE"}
    assert {last: answer_snmpd("getnext", f"{COLUMN}{last}", COUNTED) for last in following} == following
    others = [("get", ".1.3.6.1.2.1.2.2.1.18.2"), ("get", ""), ("set", f"{COLUMN}.2")]
    assert [answer_snmpd(verb, oid, COUNTED) for verb, oid in others] == ["NONE"] * 3


GIGABIT = Link(10**9, 1500)


def rig(*names: str, link: Link = GIGABIT, **fields: Any) -> Rig:
    nodes = {name: Node(name, "127.0.0.1", link) for name in names or ("pi1", "pi2")}
    return Rig("lab", "A lab", nodes, "switch", **{"virtual": "namespaces", **fields})


def test_addresses_count_from_one_in_the_files_order() -> None:
    found = [(place.name, place.ipv4, place.ipv6) for place in layout_of(rig("z", "a")).places]
    assert found == [("z", "10.77.0.1", "fd77::1"), ("a", "10.77.0.2", "fd77::2")]


def test_the_data_address_follows_kind_and_ip_version() -> None:
    def addresses(virtual: str, ip_version: int) -> tuple[str, str]:
        layout = layout_of(rig(virtual=virtual, ip_version=ip_version))
        return layout.data_address(layout.places[1]), layout.ssh_address(layout.places[1])

    assert [addresses("namespaces", ip) for ip in (4, 6)] == [("10.77.0.2", "127.0.0.1"), ("fd77::2", "127.0.0.1")]
    assert [addresses("loopback", ip) for ip in (4, 6)] == [("127.0.0.3", "127.0.0.3"), ("::1", "127.0.0.3")]


@pytest.mark.parametrize("name", ["lo", "br0", "all", "default"])
def test_a_port_gets_another_name_where_the_nodes_cannot_be_had(name: str) -> None:
    places = [(place.name, place.port) for place in layout_of(rig("pi1", name)).places]
    assert places == [("pi1", "pi1"), (name, "port.2")]


def test_the_key_depends_on_what_the_rig_is_and_on_nothing_else() -> None:
    base = layout_of(rig())
    assert layout_of(replace(rig(), text="# a comment", notes="other", title="other")).key == base.key
    others = [rig("pi2", "pi1"), rig(link=Link(10**8, 1500)), rig(link=Link(10**9, 9000)), rig(ip_version=6)]
    assert len({base.key, *(layout_of(other).key for other in others)}) == 5


def test_what_cannot_be_built_is_refused_before_anything_starts() -> None:
    with pytest.raises(InputError, match=r"251 nodes. A virtual rig has 250 at most"):
        layout_of(rig(*(f"n{number}" for number in range(251))))
    with pytest.raises(InputError, match=r"pi1 has MTU 1279. ip_version 6 needs 1280"):
        layout_of(rig(link=Link(10**9, 1279), ip_version=6))
    layout_of(rig(link=Link(10**9, 1279)))


def switched(**f10: Any) -> Rig:
    """Two switches with two nodes each, of which only the first answers SNMP; `f10` replaces its fields."""
    switches = {"f10": replace(Switch("f10", "Force10", 9216, snmp=Snmp()), **f10), "cisco": Switch("cisco", "Cisco")}
    links = {"a": ("f10", 1500), "b": ("f10", 4000), "lo": ("cisco", 1500), "d": ("cisco", 1500)}
    nodes = {name: Node(name, "127.0.0.1", Link(10**9, mtu, switch)) for name, (switch, mtu) in links.items()}
    trunk = Trunk(("f10", "cisco"), 8 * 10**9)
    return Rig("lab", "A lab", nodes, None, virtual="namespaces", switches=switches, trunk=trunk)


def test_ports_have_the_mtu_of_their_switch_or_of_the_largest_node() -> None:
    layout = layout_of(switched())
    assert [layout.port_mtu(place) for place in layout.places] == [9216, 9216, 4000, 4000]
    assert [place.mtu for place in layout.places] == [1500, 4000, 1500, 1500]
    assert Layout.from_json(json.loads(json.dumps(asdict(layout)))) == layout  # as it goes through the pipe


def test_trunk_switches_and_snmp_are_part_of_what_a_rig_is() -> None:
    base = switched()
    others = [replace(base, trunk=Trunk(("f10", "cisco"), 10**10)), switched(mtu=9000), switched(snmp=None)]
    assert len({layout_of(one).key for one in [base, *others]}) == 4
    assert layout_of(switched(title="Another title", poll_s=5)).key == layout_of(base).key


def state(snmp_port: int | None, community: str | None) -> State:
    me = Process(1, 2)
    ports = dict.fromkeys(("a", "b", "lo", "d"), 1)
    return State(Path("/x"), "lab", "lab-1", None, me, me, ports, False, snmp_port, community)


def test_a_switch_answers_on_loopback_with_the_rigs_own_community_or_has_no_address() -> None:
    def f10(tested: Rig, how: State) -> Switch:
        ready = complete(tested, layout_of(tested), how)
        assert "hush" not in f"{ready!r}{how!r}"
        assert (ready.switches["cisco"].address, ready.switches["cisco"].secrets) == (None, None)
        return ready.switches["f10"]

    snmp, hush = Snmp(port=4711), Secrets(community="hush")
    (expected, _) = switched(address="127.0.0.1", snmp=snmp, secrets=hush, poll_s=2).switches.values()
    assert f10(switched(poll_s=2), state(4711, "hush")) == expected
    for silent in (f10(switched(), state(None, None)), f10(switched(snmp=None), state(4711, "hush"))):
        assert (silent.address, silent.secrets) == (None, None)


def test_ports_are_the_bridges_interfaces() -> None:
    tested = switched()
    assert complete(tested, layout_of(tested), state(None, None)).ports == (
        *(Port("f10", name, node=name) for name in "ab"),
        Port("cisco", "port.3", node="lo"),
        Port("cisco", "d", node="d"),
        Port("f10", "trunk.0", peer="cisco"),
        Port("cisco", "trunk.1", peer="f10"),
    )


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def standing_rig(holder: Process | None = None, *, stays: bool = True) -> State:
    by = holder or known(process(os.getpid()))
    written = State(new_folder("lab-1"), "lab", "lab-1", "/lab.yaml", by, by, {"pi1": 4711}, stays)
    written.write()
    return written


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "lab"}', '{"holder": 1, "starter": 2}'])
def test_a_state_that_makes_no_sense_is_none(text: str) -> None:
    folder = new_folder("lab-1")
    (folder / "state.json").write_text(text)
    assert read(folder) is None


def test_only_a_rig_that_is_up_and_stays_is_standing() -> None:
    standing_rig(stays=False)
    assert find_running("lab-1") is None
    lasting = standing_rig()
    assert find_running("lab-1") == lasting
    assert find_running("lab-2") is None
    standing_rig(Process(os.getpid(), 1))
    assert find_running("lab-1") == lasting


def test_a_folder_that_others_can_enter_and_a_link_in_its_place_are_refused(runtime: Path) -> None:
    for name, mode in (("elsewhere", 0o700), ("rigctl", 0o755)):
        (runtime / name).mkdir()
        (runtime / name).chmod(mode)
    with pytest.raises(RigError, match="not a folder that only you can use"):
        base()
    (runtime / "rigctl").rmdir()
    (runtime / "rigctl").symlink_to(runtime / "elsewhere")
    with pytest.raises(RigError, match="not a folder that only you can use"):
        base()


def test_a_folder_in_tmp_that_another_user_has_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(state_module, "TMP", tmp_path)
    taken = tmp_path / f"rigctl-{os.geteuid()}"
    taken.mkdir(mode=0o700)
    assert base() == taken
    taken.chmod(0o777)  # as good as another user's
    found = base()
    assert tmp_path / "home" in found.parents
    assert found.stat().st_mode & 0o777 == 0o700


def test_a_sweep_removes_what_is_dead_and_nothing_else() -> None:
    living, dead = standing_rig(), standing_rig(Process(os.getpid(), 1))
    starting, abandoned = new_folder("s"), new_folder("a")
    (base() / "lock").touch()
    for path in (abandoned, base() / "lock"):
        os.utime(path, (time.time() - 3600,) * 2)
    assert sorted(sweep()) == sorted([dead.folder.name, abandoned.name])
    assert sorted(path.name for path in base().iterdir()) == sorted([living.folder.name, starting.name, "lock"])
    assert sweep() == []


def test_the_community_is_kept_for_its_owner_only() -> None:
    written = replace(standing_rig(), snmp_port=4711, community="hush")
    written.write()
    assert read(written.folder) == written
    assert (written.folder / "state.json").stat().st_mode & 0o077 == 0
