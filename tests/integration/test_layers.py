"""Bridges and macvlans of this machine's kernel, whose own speed is made up; a card is made by a file over /sys."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from lab import entering, holding, unsharing
from processes import output_of

from rigctl.hosts.fact import command_for, read_answers
from rigctl.hosts.facts import FACTS
from rigctl.hosts.network import LIST_INTERFACES, parse_interfaces

MADE = " && ".join(
    (
        "mount -t sysfs sysfs /sys",
        "ip link add eno1 type veth peer name far",
        "ip link add veth100i0 type veth peer name ct",
        "ip link add vmbr0 type bridge",
        "ip link set eno1 master vmbr0",
        "ip link set veth100i0 master vmbr0",
        "ip link add mac0 link vmbr0 type macvlan mode bridge",
        "for one in eno1 far veth100i0 ct vmbr0 mac0; do ip link set $one up; done",
        "ip address add 10.77.0.1/24 dev vmbr0",
    )
)


@pytest.fixture(scope="module")
def entered() -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [*entering(stack.enter_context(holding([*unsharing(), "-m"], MADE))), "-m"]


def facts_of(entered: list[str], interface: str | None, address: str | None = None, before: str = "true") -> Any:
    wanted = {key: FACTS[key] for key in ("interface", "speed_bps", "duplex", "cards", "bond", "vlan_tags")}
    command = f"{before} && {command_for(wanted, interface, address)}"
    return read_answers(output_of([*entered, "unshare", "-m", "sh", "-c", f"{command}; true"]), wanted)


def a_card(folder: Path, name: str, mbps: int) -> str:
    """Return commands that make an interface look like a card, as its files in /sys/class/net are on hardware."""
    (folder / "driver").mkdir(parents=True)
    files = {"speed": f"{mbps}", "duplex": "full", "operstate": "up", "mtu": "1500", "address": "02:00:00:00:00:01"}
    for file, text in (files | {"uevent": f"INTERFACE={name}", "flags": "0x1003"}).items():
        (folder / file).write_text(f"{text}\n")
    (folder / "device").mkdir()
    (folder / "device/driver").symlink_to("../driver")
    return f"mount --bind {folder} $(readlink -f /sys/class/net/{name})"


@pytest.mark.parametrize(
    ("interface", "address"), [("vmbr0", None), (None, "10.77.0.1"), ("mac0", None), ("eno1", None)]
)
def test_without_a_card_there_is_no_speed_though_the_kernel_makes_one_up(
    entered: list[str], interface: str | None, address: str | None
) -> None:
    assert output_of([*entered, "cat", "/sys/class/net/vmbr0/speed"]) == "10000\n"
    found = facts_of(entered, interface, address)
    assert found["interface"] == (interface or "vmbr0")
    assert {found[key] for key in ("speed_bps", "duplex", "cards", "bond", "vlan_tags")} == {None}


@pytest.mark.parametrize("interface", ["vmbr0", "mac0"])
def test_a_bridge_has_the_speed_of_its_card_and_not_of_a_containers_veth(
    entered: list[str], tmp_path: Path, interface: str
) -> None:
    found = facts_of(entered, interface, before=a_card(tmp_path / "eno1", "eno1", 1000))
    assert (found["speed_bps"], found["duplex"], found["cards"]) == (10**9, "full", ["eno1"])


def test_rig_init_sees_the_same_of_all_interfaces(entered: list[str], tmp_path: Path) -> None:
    listed = f"{a_card(tmp_path / 'eno1', 'eno1', 2500)} && {{ {LIST_INTERFACES} }}"
    found = parse_interfaces(output_of([*entered, "unshare", "-m", "sh", "-c", listed]))
    speeds = {name: found[name].speed_bps for name in ("eno1", "vmbr0", "mac0", "veth100i0", "far")}
    assert speeds == {"eno1": 25 * 10**8, "vmbr0": 25 * 10**8, "mac0": 25 * 10**8, "veth100i0": None, "far": None}
    assert found["vmbr0"].cards == found["mac0"].cards == ("eno1",)
