"""Which buckets change when an MTU does: the kernel's side is played by sockets that only keep what they are sent."""

import errno
import os
import socket
import struct
from typing import cast

import pytest

from rigctl.virtual.follow import _Shaper
from rigctl.virtual.layout import Bridge, Layout, Place
from rigctl.virtual.links import node_bucket, port_bucket, trunk_bucket
from rigctl.virtual.netlink import ask_link, change_bucket

INDEXES = {"a": 11, "b": 12, "trunk.0": 21, "trunk.1": 22}


class Kernel:
    """One end of a netlink socket: `says` is what comes next, `told` what was sent."""

    def __init__(self) -> None:
        self.says: list[bytes | OSError] = []
        self.told: list[bytes] = []

    def recv(self, _: int) -> bytes:
        if not self.says:
            raise BlockingIOError
        said = self.says.pop(0)
        if isinstance(said, OSError):
            raise said
        return said

    def send(self, data: bytes) -> None:
        self.told.append(data)


class Switch(Kernel):
    """Agrees to everything, at once, as rtnetlink does."""

    def send(self, data: bytes) -> None:
        super().send(data)
        self.says.append(struct.pack("=IHHIIi16x", 36, 2, 0, 0, 0, 0))


class Rig:
    """Two switches with a node each; `a` is shaped to 1 Gbit/s, `b` not at all."""

    def __init__(self, trunk_bps: int | None = 8 * 10**9) -> None:
        self.places = (Place("a", 1, 10**9, 1500), Place("b", 2, None, 1500, bridge=1))
        bridges = (Bridge("br0", "x", 9216), Bridge("br.1", "y", 9216))
        self.layout = Layout("lab", "namespaces", 4, self.places, bridges, trunk_bps)
        self.nodes = {"a": Kernel(), "b": Kernel()}
        self.switch = Switch()
        nodes = cast("dict[str, socket.socket]", self.nodes)
        self.shaper = _Shaper(self.layout, nodes, cast("socket.socket", self.switch))

    def hears(self, name: str, *said: bytes | OSError) -> None:
        self.nodes[name].says.extend(said)
        self.shaper.hear(next(place for place in self.places if place.name == name))


@pytest.fixture(autouse=True)
def interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "if_nametoindex", INDEXES.__getitem__)


def link(mtu: int, name: str = "eth0", index: int = 2) -> bytes:
    attributes = struct.pack("=HH8s", 12, 3, name.encode() + b"\0") + struct.pack("=HHI", 8, 4, mtu)
    body = struct.pack("=BxHiII", 0, 1, index, 0, 0) + attributes
    return struct.pack("=IHHII", 16 + len(body), 16, 0, 0, 0) + body


def test_both_ends_of_the_cable_and_the_trunk_follow() -> None:
    rig = Rig()
    rig.hears("a", link(8192))
    assert rig.nodes["a"].told == [change_bucket(2, node_bucket(10**9, 8192))]
    trunk = trunk_bucket(8 * 10**9, [8192])
    assert rig.switch.told == [
        change_bucket(11, port_bucket(10**9, 8192)),
        change_bucket(21, trunk),
        change_bucket(22, trunk),
    ]


def test_what_is_no_change_of_the_mtu_changes_nothing() -> None:
    rig = Rig()
    rig.hears("a", link(1500), link(65536, "lo", 1), b"")
    assert rig.nodes["a"].told == rig.switch.told == []


def test_a_node_without_a_rate_has_no_bucket_but_counts_on_the_trunk() -> None:
    rig = Rig()
    rig.hears("b", link(8192))
    assert rig.nodes["b"].told == []
    assert rig.switch.told == [change_bucket(end, trunk_bucket(8 * 10**9, [8192])) for end in (21, 22)]


def test_the_trunk_changes_with_the_largest_only() -> None:
    rig = Rig()
    rig.hears("b", link(9000))
    rig.switch.told.clear()
    rig.hears("a", link(8192))
    assert rig.switch.told == [change_bucket(11, port_bucket(10**9, 8192))]
    rig.switch.told.clear()
    rig.hears("b", link(1500))
    assert rig.switch.told == [change_bucket(end, trunk_bucket(8 * 10**9, [8192])) for end in (21, 22)]


def test_a_trunk_without_a_rate_is_left_alone() -> None:
    rig = Rig(trunk_bps=None)
    rig.hears("a", link(8192))
    assert [struct.unpack_from("=i", told, 20)[0] for told in rig.switch.told] == [11]


def test_where_the_kernel_had_too_much_to_say_it_is_asked_again() -> None:
    rig = Rig()
    rig.hears("a", OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS)))
    assert rig.nodes["a"].told == [ask_link("eth0")]
    rig.hears("a", link(8192))
    assert rig.nodes["a"].told[1:] == [change_bucket(2, node_bucket(10**9, 8192))]


def test_a_refusal_goes_into_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    rig = Rig()
    rig.hears("a", struct.pack("=IHHIIi16x", 36, 2, 0, 0, 0, -errno.ENOENT))
    assert capsys.readouterr().err == "a: shaping could not follow the MTU: No such file or directory\n"
