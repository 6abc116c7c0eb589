"""Counters of the wire, as Linux 6.12 tells them by ethtool netlink: the driver netdevsim, real card drivers."""

import os
import platform
import re
from collections.abc import Callable, Iterator

import pytest
from netdevsim import (
    CARD,
    FILES,
    RISES,
    Machine,
    build_recorder,
    counters_by_ethtool,
    netdevsim_machine,
    recorded,
    recordings,
)
from processes import eventually
from talk import Line, Talk, begin, completed, joined, report_of

from rigctl.remote.build import build_binaries

pytestmark = [
    pytest.mark.machines,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the driver is built for x86_64, on such a machine"),
]
PAUSE = ("rx_pause", "tx_pause")
FEC = ("fec_corrected", "fec_uncorrectable")
OF_E1000E = (*PAUSE, "fcs_errors", "alignment_errors", "late_collisions")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with netdevsim_machine(tmp_path_factory.mktemp("wire")) as made:
        made.put(build_binaries(["x86_64"])[0].path, "agent")
        yield made


def reported(machine: Machine, interface: str, meanwhile: Callable[[], None] = lambda: None) -> Line:
    """Return what the agent reports of an interface after traffic on the loopback, and what came `meanwhile`."""
    agent = [*machine.ssh, "/root/agent"]
    with Talk(agent) as receiver, Talk(agent) as sender:
        joined(receiver, sender, listen=f"interface={interface}")
        at_ns = int(receiver.ask("clock")["clock_ns"]) + 30_000_000
        begin(receiver, at_ns=at_ns)
        begin(sender, 100, at_ns=at_ns)
        meanwhile()
        completed(receiver, sender)
        last = report_of(receiver).last
    print(interface, counters := {name: last[name] for name in RISES})
    return counters


def test_the_kernel_still_answers_what_is_recorded(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> None:
    now = recordings(machine, build_recorder(tmp_path_factory.mktemp("recorder")))
    if os.environ.get("RIGCTL_GOLDEN") == "renew":
        for name, file in FILES.items():
            file.write_text(now[name])
    before = {name: file.read_text() for name, file in FILES.items()}
    assert recorded(now["netdevsim-6.12"]) == recorded(before["netdevsim-6.12"])
    names = r"^ +(\w+): \d+$"
    assert re.findall(names, now["e1000e-qemu"], re.M) == re.findall(names, before["e1000e-qemu"], re.M)


@pytest.mark.parametrize("interface", [CARD, f"{CARD}.7"])
def test_each_counter_rises_in_the_report_as_ethtool_shows_it(machine: Machine, interface: str) -> None:
    machine.load("rising")
    machine.run(f"ip link add link {CARD} name {CARD}.7 type vlan id 7; ip link set {CARD}.7 up")
    machine.switch(risen=5)
    before = counters_by_ethtool(machine)
    found = reported(machine, interface, lambda: machine.switch(risen=8))
    after = counters_by_ethtool(machine)
    assert found == {name: 3 * rise for name, rise in RISES.items()}
    assert found == {name: (after[name] or 0) - (before[name] or 0) for name in RISES}


def test_counters_that_begin_anew_are_unknown(machine: Machine) -> None:
    machine.load("rising")
    machine.switch(risen=5)
    assert reported(machine, CARD, lambda: machine.switch(risen=4)) == dict.fromkeys(RISES)


@pytest.mark.parametrize(
    ("switches", "known"),
    [
        ({}, (*PAUSE, *FEC)),
        ({"rx": 0}, ("tx_pause", *FEC)),
        ({"tx": 0}, ("rx_pause", *FEC)),
        ({"get_err": 95}, PAUSE),  # EOPNOTSUPP to FEC_GET
        ({"rx": 0, "tx": 0, "get_err": 95}, ()),
    ],
)
def test_what_debians_driver_does_not_count_is_unknown_and_not_0(
    machine: Machine, switches: dict[str, int], known: tuple[str, ...]
) -> None:
    machine.load("netdevsim")
    machine.switch(**switches)
    assert reported(machine, CARD) == dict.fromkeys(RISES) | dict.fromkeys(known, 0)


def test_a_counter_that_appears_meanwhile_is_unknown(machine: Machine) -> None:
    machine.load("netdevsim")
    machine.switch(rx=0)
    found = reported(machine, CARD, lambda: machine.switch(rx=1))
    assert counters_by_ethtool(machine)["rx_pause"] == 1
    assert (found["rx_pause"], found["tx_pause"]) == (None, 0)


@pytest.mark.parametrize(
    ("interface", "driver", "known"), [("eth2", "e1000e", OF_E1000E), ("ssh0", "virtio_net", ()), ("lo", None, ())]
)
def test_private_counters_are_read_of_the_driver_that_is_known(
    machine: Machine, interface: str, driver: str | None, known: tuple[str, ...]
) -> None:
    if driver is not None:
        assert f"driver: {driver}\n" in machine.run(f"ethtool -i {interface}")
    assert reported(machine, interface) == dict.fromkeys(RISES) | dict.fromkeys(known, 0)


@pytest.mark.parametrize("how", ["restore", "agent killed"])
def test_energy_efficient_ethernet_is_switched_off_and_comes_back_as_it_was(machine: Machine, how: str) -> None:
    machine.load("rising")
    machine.run(f"ethtool --set-eee {CARD} eee on advertise 0x800000000028")  # 1000 and 2500 Mbit/s, and 100 full
    before = machine.run(f"ethtool --show-eee {CARD}")
    assert "2500baseT/Full" in before
    with Talk([*machine.ssh, "/root/agent"]) as agent:
        assert agent.ask(f"set kind=eee interface={CARD} value=off dry=1")["ok"]
        assert machine.run(f"ethtool --show-eee {CARD}") == before
        answer = agent.ask(f"set kind=eee interface={CARD} value=off")
        print(answer)
        assert answer["value"] == "off"
        assert "EEE status: disabled" in machine.run(f"ethtool --show-eee {CARD}")
        if how == "restore":
            assert agent.ask("restore")["restored"] == 1
        else:
            machine.run("pkill -9 -x agent")
            eventually(lambda: machine.run(f"ethtool --show-eee {CARD}") == before)
    assert machine.run(f"ethtool --show-eee {CARD}") == before


@pytest.mark.parametrize("interface", ["eth2", "ssh0"])
def test_a_driver_without_it_is_refused(machine: Machine, interface: str) -> None:
    with Talk([*machine.ssh, "/root/agent"]) as agent:
        answer = agent.ask(f"set kind=eee interface={interface} value=off dry=1")
    assert answer["error"] == "EOPNOTSUPP"
    assert "turn it off at the other end" in answer["message"]
