"""Facts of a Windows node, from the answer of its agent to the order `facts`."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rigctl.base.errors import NodeError
from rigctl.hosts.windows import CHECKED, read_host
from rigctl.protocol.host_facts import HostReply
from rigctl.protocol.lines import Answer, parse_line
from rigctl.protocol.orders import AskHost, Listen, Sockets
from rigctl.records import Facts, Link
from rigctl.records.host_facts import HOST_FACTS
from rigctl.rig.inventory import Node

CARD = {"name": "Ethernet 2", "up": True, "speed_bps": 10**10, "mtu": 9000, "mac": "02:00:00:00:00:01"}
CARD |= {"driver": "mlx5", "driver_date": "2021-03-04", "driver_version": "2.60", "hardware": True}
CARD |= {"driver_provider": "Mellanox Technologies Ltd."}
CARD |= {"addresses": ["fe80::1/64", "2001:db8::3/64", "10.0.0.3/24", "no address"]}
SETTINGS = {"interrupt_moderation": 0, "rss": 1, "rss_queues": 8, "jumbo_packet": 9014, "transmit_buffers": 2048}
SAID: dict[str, Any] = {"id": 1, "ok": True, "system": "Windows 10.0.19045", "boot_id": "b", "cpus": 8}
SAID |= {"power_plan": "Balanced", "firewall": {"domain": True, "public": None}, "interfaces": [{"name": "lo"}, CARD]}
NODE = Node("win", "10.0.0.3", Link(None, None))


def reply(**changed: Any) -> HostReply:
    answer = parse_line("win", json.dumps(SAID | changed).encode() + b"\n")
    assert isinstance(answer, Answer)
    assert answer.host is not None
    return answer.host


def test_facts_have_the_keys_of_the_other_systems() -> None:
    found = read_host(reply(), NODE, "windows-x86_64")
    assert found == read_host(reply(), replace(NODE, address="win", data_interface="Ethernet 2"), "windows-x86_64")
    told = {key: value for key, value in found.items() if value is not None}
    assert told.pop("firewall") == {"domain": True}
    assert told == {
        **{key: CARD[key] for key in ("speed_bps", "mtu", "mac", "driver", "driver_date", "driver_version", "up")},
        "driver_provider": CARD["driver_provider"],
        "kernel": "Windows 10.0.19045 windows-x86_64",
        **{"os": "Windows 10.0.19045", "cpus": 8, "boot_id": "b", "power_plan": "Balanced"},
        **{"interface": "Ethernet 2", "addresses": ["10.0.0.3", "2001:db8::3"], "virtual": False, "carrier": 1},
    }


def test_what_is_stored_of_a_windows_node_has_the_types_of_the_records() -> None:
    found = read_host(reply(hypervisor=True, interfaces=[CARD | SETTINGS]), NODE, "windows-x86_64")
    stored = {key: value for key, value in found.items() if key not in CHECKED}
    known = {key: type(value) for key, value in stored.items() if value is not None}
    assert known == {key: HOST_FACTS[key].kind for key in known}
    assert {"hypervisor", "rss", "rings", "card_mtu", "driver_date"} < known.keys()


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        ({}, {}),
        (
            SETTINGS,
            {"interrupt_moderation": False, "rss": True, "rx_queues": 8, "rings": {"tx": 2048}, "card_mtu": 9000},
        ),
        ({"rss": 0, "rss_queues": 8, "jumbo_packet": 0}, {"rss": False, "rx_queues": 1}),  # one queue without RSS
    ],
)
def test_settings_of_the_card_have_the_keys_of_the_other_systems(settings: dict[str, int], known: Facts) -> None:
    found = read_host(reply(interfaces=[CARD | settings]), NODE, "windows-x86_64")
    names = ("interrupt_moderation", "rss", "rx_queues", "rings", "card_mtu")
    assert {name: found[name] for name in names} == dict.fromkeys(names) | known


def test_an_unknown_interface_leaves_its_facts_out() -> None:
    found = read_host(reply(), replace(NODE, address="10.0.0.4"), "windows-x86_64")
    assert found["interface"] is None
    assert "mtu" not in found


@pytest.mark.parametrize(
    "changed", [{"interfaces": [{"name": "a"}] * 33}, {"cpus": "8"}, {"cpus": -1}, {"interfaces": [{}]}, {"x": 1}]
)
def test_a_wrong_answer_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(NodeError, match="violated the protocol"):
        reply(**changed)


def test_names_of_interfaces_may_have_blanks() -> None:
    assert AskHost().to_line(1) == b"1 facts\n"
    order = Listen(1, "10.0.0.3", Sockets("0" * 32, 1, 100, 100, interface="LAN-Brücke 2"))
    assert b" interface=LAN-Br%C3%BCcke%202" in order.to_line(2)
