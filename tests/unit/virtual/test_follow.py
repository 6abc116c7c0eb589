"""Which buckets change when an MTU does."""

import pytest

from rigctl.virtual import follow
from rigctl.virtual.layout import Bridge, Layout, Place
from rigctl.virtual.links import node_bucket, port_bucket, trunk_bucket

NODE_A = ("-n a", node_bucket(10**9, 8192).line("eth0", "change"))
PORT_A = ("", port_bucket(10**9, 8192).line("a", "change"))


def trunk(mtu: int) -> list[tuple[str, str]]:
    return [("", trunk_bucket(8 * 10**9, [mtu]).line(end, "change")) for end in ("trunk.0", "trunk.1")]


class Rig:
    """Two switches with a node each: `a` is shaped to 1 Gbit/s, `b` not at all. `told`: the lines that tc got."""

    def __init__(self, told: list[tuple[str, str]], trunk_bps: int | None = 8 * 10**9) -> None:
        self.places = {"a": Place("a", 1, 10**9, 1500), "b": Place("b", 2, None, 1500, bridge=1)}
        bridges = (Bridge("br0", "x", 9216), Bridge("br.1", "y", 9216))
        self.layout = Layout("lab", "namespaces", 4, tuple(self.places.values()), bridges, trunk_bps)
        self.mtus = dict.fromkeys(self.places, 1500)
        self.told = told

    def changed(self, name: str, mtu: int) -> list[tuple[str, str]]:
        self.told.clear()
        follow.change_buckets(self.layout, self.places[name], self.mtus, mtu)
        return self.told


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    monkeypatch.setattr(follow, "_tc", lambda _, where, given: lines.extend((" ".join(where), line) for line in given))
    return lines


def test_both_ends_of_the_cable_and_the_trunk_follow(told: list[tuple[str, str]]) -> None:
    assert Rig(told).changed("a", 8192) == [NODE_A, PORT_A, *trunk(8192)]


def test_a_node_without_a_rate_has_no_bucket_but_counts_on_the_trunk(told: list[tuple[str, str]]) -> None:
    assert Rig(told).changed("b", 8192) == trunk(8192)


def test_the_trunk_changes_with_the_largest_only(told: list[tuple[str, str]]) -> None:
    rig = Rig(told)
    rig.changed("b", 9000)
    assert rig.changed("a", 8192) == [NODE_A, PORT_A]
    assert rig.changed("b", 1500) == trunk(8192)


def test_a_trunk_without_a_rate_is_left_alone(told: list[tuple[str, str]]) -> None:
    assert Rig(told, trunk_bps=None).changed("a", 8192) == [NODE_A, PORT_A]
