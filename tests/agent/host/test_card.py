"""Settings of a card: read back, refused with what the card takes, and put back as they were."""

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from cases import from_file
from fake_clock import preloaded, with_library
from lab import Lab, kill_with_guard, laboratory
from processes import eventually
from talk import Talk

from rigctl.conditions.condition import KEYS_BY_KIND
from rigctl.protocol.orders import encode

QUEUES = ("numrxqueues", "4", "numtxqueues", "4")
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the kernel lets nobody but root set rps_cpus, in any namespace")
_NUMBERS = struct.Struct("=9I23I9I4I")
_RX_MAX, _TX_MAX, _RX, _TX = 1, 4, 5, 8
_RX_USECS, _RX_FRAMES, _ADAPTIVE = 9 + 1, 9 + 2, 9 + 10
_COMBINED_MAX, _COMBINED = 32 + 4, 32 + 8
_AUTONEG, _RX_PAUSE, _TX_PAUSE = 41 + 1, 41 + 2, 41 + 3
"""Places of the numbers in `struct card` of fake_card.c."""


def order(kind: str, value: str, name: str = "", interface: str = "w0") -> str:
    word = f" name={name}" if name else ""
    asked = KEYS_BY_KIND[kind].to_agent("0-1" if value == "all" else value)
    return f"set kind={kind}{word} interface={interface} value={encode(asked)}"


def ended(lab: Lab, agent: Talk, how: str) -> None:
    """End an agent; settings are restored by itself, by its guard or, where that is killed, too, by the next agent."""
    if how == "restore":
        assert agent.ask("restore")["ok"]
    elif how == "agent killed":
        agent.process.kill()
        eventually(lambda: not lab.journal.exists())
    else:
        kill_with_guard(lab, agent)
        assert lab.start().hello["unrestored"] is None
    assert not lab.journal.exists()


@pytest.fixture
def wide(lab: Lab) -> Lab:
    lab.run("ip", "link", "add", "w0", *QUEUES, "type", "veth", "peer", "name", "w1", *QUEUES)
    for end in ("w0", "w1"):
        lab.run("ip", "link", "set", end, "up")
    return lab


def masks(lab: Lab, interface: str = "w0") -> list[str]:
    return lab.run("sh", "-c", f"cat /sys/class/net/{interface}/queues/rx-*/rps_cpus").split()


def state(lab: Lab) -> tuple[str, str, list[str]]:
    qdisc = re.sub(r" direct_packets_stat [0-9]+", "", lab.run("tc", "qdisc", "show", "dev", "w0"))  # of htb
    return lab.run("ethtool", "-l", "w0"), qdisc, masks(lab)


@pytest.mark.parametrize("how", ["restore", "agent killed", "guard killed"])
@from_file
def test_channels_and_a_qdisc_that_somebody_set_come_back_with_all_parameters(wide: Lab, old: str, how: str) -> None:
    wide.run("tc", "qdisc", "replace", "dev", "w0", "root", *old.split())
    before = state(wide)
    agent = wide.start()
    assert agent.ask(order("channels", "2", "rx"))["value"] == "2"
    for value in ("tbf rate 100M burst 64K limit 1M", "tbf rate 200M burst 32K limit 1M", "bfifo limit 100K"):
        assert KEYS_BY_KIND["qdisc"].from_agent(agent.ask(order("qdisc", value))["value"]) == value
    channels, qdisc, _ = state(wide)
    assert "RX:\t\t2" in channels.partition("Current")[2]
    assert "bfifo" in qdisc
    assert "limit 100Kb" in qdisc
    ended(wide, agent, how)
    assert state(wide) == before


@from_file
def test_a_qdisc_that_could_not_be_put_back_is_left_alone(wide: Lab, made: list[str], said: str) -> None:
    for each in made:
        wide.run("tc", "qdisc", "add", "dev", "w0", *each.split())
    before = state(wide)
    agent = wide.start()
    for dry in ("", " dry=1"):
        answer = agent.ask(order("qdisc", "pfifo limit 77") + dry)
        assert answer["error"] == "EOPNOTSUPP"
        assert answer["message"].endswith(f"; {said} cannot be put back as it is: remove it first")
    assert state(wide) == before
    assert not wide.journal.exists()


def test_a_kind_that_the_kernel_lacks_is_named_and_the_old_one_is_back(wide: Lab) -> None:
    wide.run("tc", "qdisc", "replace", "dev", "w0", "root", "handle", "7:", "pfifo", "limit", "123")
    before = state(wide)
    agent = wide.start()
    answer = agent.ask("set kind=qdisc interface=w0 value=nonesuch:0:")
    assert answer["message"] == "qdisc of w0: No such file or directory; this kernel has no nonesuch"
    assert state(wide) == before
    for value in (":", "a-kind-with-a-name-too-long:0:", "pfifo:0:4", "pfifo:0:xx"):
        assert agent.ask(f"set kind=qdisc interface=w0 value={value}")["error"] == "EINVAL"
    assert state(wide) == before


@ROOT
@pytest.mark.parametrize("how", ["restore", "agent killed", "guard killed"])
def test_processors_of_a_queue_that_went_come_back_with_it(wide: Lab, how: str) -> None:
    wide.run("sh", "-c", "echo 2 >/sys/class/net/w0/queues/rx-3/rps_cpus")
    before = state(wide)
    agent = wide.start()
    assert (
        KEYS_BY_KIND["rps"].from_agent(agent.ask(order("rps", "off") + " dry=1")["old"]).endswith("rx-2: off, rx-3: 1")
    )
    assert agent.ask(order("channels", "2", "rx"))["ok"]
    for processors, each in (("0", 1), ("all", 3)):
        assert KEYS_BY_KIND["rps"].from_agent(agent.ask(order("rps", processors))["value"]) == (
            "0" if each == 1 else "0-1"
        )
        assert [int(mask, 16) for mask in masks(wide)] == [each, each]
    ended(wide, agent, how)
    assert state(wide) == before


def test_a_value_that_the_driver_rounds_is_told_as_it_is_in_effect(lab: Lab) -> None:
    lab.run("ip", "tuntap", "add", "t0", "mode", "tap")  # batches at most 64
    before = lab.run("ethtool", "-c", "t0")
    agent = lab.start()
    answer = agent.ask(order("coalesce", "100", "rx_frames", "t0"))
    assert (answer["old"], answer["value"]) == ("0", "64")
    assert agent.ask(order("coalesce", "50", "rx_usecs", "t0"))["error"] == "EOPNOTSUPP"
    assert agent.ask("restore")["ok"]
    assert lab.run("ethtool", "-c", "t0") == before


@from_file
def test_a_refusal_says_what_the_card_takes(wide: Lab, asked: tuple[str, ...], error: str, message: str) -> None:
    before = state(wide)
    agent = wide.start()
    for dry in (" dry=1", ""):
        answer = agent.ask(order(*asked) + dry)
        said = answer["message"].replace(": Not supported;", ": Operation not supported;")  # of musl, and of glibc
        assert (answer["ok"], answer["error"], said) == (False, error, message)
    assert state(wide) == before
    assert not wide.journal.exists()


def test_a_dry_order_of_any_kind_reads_and_changes_nothing(wide: Lab) -> None:
    agent = wide.start()
    answer = agent.ask("set kind=mtu interface=w0 value=1400 dry=1")
    assert answer == {"id": 1, "ok": True, "old": "1500", "value": "1500"}
    assert agent.ask("set kind=sysctl name=net.ipv4.tcp_nonsense value=1 dry=1")["error"] == "ENOENT"
    assert agent.ask("set kind=governor value=performance dry=1")["error"] == "ENOENT"
    assert agent.ask("set kind=mtu interface=w0 value=1400 dry=2")["error"] == "EPROTO"
    assert wide.mtu("w0") == 1500
    assert not wide.journal.exists()


@dataclass
class FakeCard:
    """v0 as a card with rings, coalescing, channels and pause frames (fake_card.c)."""

    lab: Lab
    file: Path
    library: Path

    def start(self) -> Talk:
        return self.lab.start(by=with_library(self.library, FAKE_CARD=self.file))

    def numbers(self, *places: int) -> list[int]:
        held = _NUMBERS.unpack(self.file.read_bytes())
        return [held[place] for place in places]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded(Path(__file__).with_name("fake_card.c"), tmp_path_factory.mktemp("card"))


@pytest.fixture
def card(sanitized: Path, library: Path, tmp_path: Path) -> Iterator[FakeCard]:
    held = [0] * 45
    held[_RX_MAX] = held[_TX_MAX] = 4096
    held[_RX] = held[_TX] = 256
    held[_RX_USECS], held[_RX_FRAMES] = 50, 10
    held[_COMBINED_MAX], held[_COMBINED] = 8, 4
    held[_AUTONEG] = held[_RX_PAUSE] = held[_TX_PAUSE] = 1
    file = tmp_path / "card"
    file.write_bytes(_NUMBERS.pack(*held))
    with laboratory(sanitized, tmp_path) as lab:
        yield FakeCard(lab, file, library)


on_card = partial(order, interface="v0")


@pytest.mark.parametrize("how", ["restore", "agent killed"])
def test_every_number_of_a_card_is_set_by_itself_and_put_back(card: FakeCard, how: str) -> None:
    before = card.file.read_bytes()
    agent = card.start()
    for old in ("256", "512"):
        answer = agent.ask(on_card("rings", "300", "rx"))
        assert (answer["old"], answer["value"]) == (old, "512")  # a power of two
    assert agent.ask(on_card("rings", "1000", "tx"))["value"] == "1000"
    assert agent.ask(on_card("channels", "8", "combined"))["old"] == "4"
    assert agent.ask(on_card("coalesce", "on", "adaptive_rx"))["old"] == "off"
    assert agent.ask(on_card("coalesce", "7", "rx_frames"))["value"] == "7"
    assert agent.ask(on_card("pause", "off", "autoneg"))["old"] == "on"
    assert agent.ask(on_card("pause", "off", "rx"))["value"] == "off"
    assert card.numbers(_RX, _TX, _COMBINED, _RX_FRAMES, _AUTONEG, _RX_PAUSE) == [512, 1000, 8, 7, 0, 0]
    assert card.numbers(_ADAPTIVE, _RX_USECS) == [1, 3]  # the driver chose for itself
    ended(card.lab, agent, how)
    assert card.file.read_bytes() == before


def test_a_ring_beyond_the_most_or_left_as_it_was_is_refused(card: FakeCard) -> None:
    agent = card.start()
    most = "rings rx of v0: Invalid argument; 9000 was asked for, the card takes rx up to 4096, tx up to 4096"
    assert agent.ask(on_card("rings", "9000", "rx"))["message"] == most
    assert agent.ask(on_card("rings", "200", "rx"))["message"] == "rings rx of v0: 200 was set, 256 is read back"
    assert agent.ask("restore")["ok"]
    assert card.numbers(_RX) == [256]
