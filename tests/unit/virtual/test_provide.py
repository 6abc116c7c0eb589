"""What an ordinary rig is made of a virtual one: who answers SNMP where, and which port is whose."""

from pathlib import Path

from rigctl.base.processes import Process
from rigctl.records import Link, Port, Trunk
from rigctl.rig.inventory import Node, Rig, Snmp, Switch
from rigctl.virtual.provide import completed, layout_of
from rigctl.virtual.state import State


def rig(*, snmp: Snmp | None = Snmp()) -> Rig:  # noqa: B008  # frozen
    nodes = {name: Node(name, "", Link(10**9, 1500, key)) for name, key in (("a", "one"), ("lo", "two"))}
    switches = {key: Switch(key, key, snmp=snmp, poll_s=2) for key in ("one", "two")}
    trunk = Trunk(("one", "two"), None)
    return Rig("lab", "A lab", nodes, None, virtual="namespaces", switches=switches, trunk=trunk)


def state(snmp_port: int | None, community: str | None) -> State:
    me = Process(1, 2)
    return State(Path("/x"), "lab", "lab-1", None, me, me, {"a": 1, "lo": 2}, False, snmp_port, community)


def test_both_switches_answer_at_the_same_place_with_the_rigs_own_community() -> None:
    tested = rig()
    ready = completed(tested, layout_of(tested), state(4711, "hush"))
    for switch in ready.switches.values():
        assert (switch.address, switch.snmp, switch.poll_s) == ("127.0.0.1", Snmp(port=4711), 2)
        assert switch.secrets is not None
        assert switch.secrets.community == "hush"
    assert "hush" not in repr(ready)
    assert "hush" not in repr(state(4711, "hush"))


def test_a_switch_that_nobody_answers_for_has_no_address() -> None:
    for tested, how in ((rig(), state(None, None)), (rig(snmp=None), state(4711, "hush"))):
        ready = completed(tested, layout_of(tested), how)
        assert [(switch.address, switch.secrets) for switch in ready.switches.values()] == [(None, None)] * 2


def test_ports_are_the_bridges_interfaces() -> None:
    tested = rig()
    assert completed(tested, layout_of(tested), state(None, None)).ports == (
        Port("one", "a", node="a"),
        Port("two", "port.2", node="lo"),
        Port("one", "trunk.0", peer="two"),
        Port("two", "trunk.1", peer="one"),
    )
