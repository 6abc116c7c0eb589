"""Neighbours from recorded outputs of lldpcli 1.0.16 (Debian 12)."""

import json
from typing import Any

import pytest

from rigctl.probe.network import Neighbour, neighbours

CAPABILITIES = [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": False}]
JSON = {
    "lldp": {
        "interface": {
            "eth0": {
                "via": "LLDP",
                "chassis": {
                    "gigablox": {
                        "id": {"type": "mac", "value": "52:b5:bc:e4:b7:ff"},
                        "mgmt-ip": ["10.97.0.254", "fe80::50b5:bcff:fee4:b7ff"],
                        "capability": CAPABILITIES,
                    }
                },
                "port": {"id": {"type": "mac", "value": "52:b5:bc:e4:b7:01"}, "descr": "port1", "ttl": "4"},
            }
        }
    }
}
EXPECTED = Neighbour("eth0", "gigablox", "52:b5:bc:e4:b7:ff", "10.97.0.254", "port1", "port1", is_switch=True)


def test_a_neighbour_is_read_with_its_port() -> None:
    assert neighbours(json.dumps(JSON, indent=2)) == ((EXPECTED,), None)


def test_a_port_is_called_by_its_interface_name_where_it_gives_that() -> None:
    port = {"id": {"type": "ifname", "value": "Gi1/7"}, "descr": "to the lab"}
    document = {"lldp": {"interface": {"eth0": {"chassis": {"id": {"type": "local", "value": "x"}}, "port": port}}}}
    (found,), _ = neighbours(json.dumps(document))
    assert (found.port, found.chassis, found.chassis_id, found.is_switch) == ("Gi1/7", None, "x", None)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("absent\n", "absent"),
        ("absent\nrefused\n", "absent"),
        ("refused\n", "refused"),
        ("", "refused"),
        ("{broken", "refused"),
    ],
)
def test_without_an_answer_the_reason_is_kept(output: str, why: str) -> None:
    assert neighbours(output) == ((), why)


@pytest.mark.parametrize(
    "document",
    [
        {"lldp": {}},
        {"lldp": None},
        {"lldp": []},
        {"lldp": {"interface": {}}},
        {"lldp": {"interface": [1, None, {"eth0": 3}]}},
        {"lldp": 7},
    ],
)
def test_nobody_heard_and_odd_shapes_are_no_neighbours(document: dict[str, Any]) -> None:
    assert neighbours(json.dumps(document)) == ((), None)
