"""Forwarding tables of switches as they number their ports, from walks of the kind that LibreNMS records of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from pysnmp.proto import rfc1902

from rigctl.probe.switches import snmp
from rigctl.probe.switches.snmp import Session, read_forwarding
from rigctl.rig.inventory import Secrets, Switch

NAME, DESCRIPTION, ALIAS = "1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.31.1.1.1.18"
BASE_PORT = "1.3.6.1.2.1.17.1.4.1.2"
BY_VLAN, BY_MAC = "1.3.6.1.2.1.17.7.1.2.2.1.2", "1.3.6.1.2.1.17.4.3.1.2"
A, B, C = ("222.94.161.225.121.46", "202.123.106.163.144.47", "2.0.0.0.0.9")
MAC_A, MAC_B, MAC_C = ("de:5e:a1:e1:79:2e", "ca:7b:6a:a3:90:2f", "02:00:00:00:00:09")


class Recorded(Session):
    """A session that answers from a walk: OID → value. Nothing is sent."""

    recorded: ClassVar[dict[str, Any]]

    async def text(self, oid: str) -> str | None:
        return None

    async def walk(self, column: str, most: int) -> list[tuple[tuple[int, ...], Any]]:
        kind = rfc1902.OctetString if column in (NAME, DESCRIPTION, ALIAS) else rfc1902.Integer32
        below = [(oid.removeprefix(f"{column}."), value) for oid, value in self.recorded.items() if f"{column}." in oid]
        return [(tuple(map(int, index.split("."))), kind(value)) for index, value in below]


def session_of(recorded: dict[str, Any]) -> Session:
    made = type("_", (Recorded,), {"recorded": recorded})
    session: Session = made(SWITCH, None, None, None)
    return session


SWITCH = Switch("sw1", "sw1")


def walk(**columns: dict[str, Any]) -> dict[str, Any]:
    """Three interfaces with these rows of `names`, `descriptions`, `ports`, `q` (VLAN 1) and `d`."""
    places = {"names": NAME, "descriptions": DESCRIPTION, "ports": BASE_PORT, "q": f"{BY_VLAN}.1", "d": BY_MAC}
    return {f"{places[kind]}.{index}": value for kind, rows in columns.items() for index, value in rows.items()}


def named(first: int, form: str) -> dict[str, str]:
    return {str(first + number): form.format(number + 1) for number in range(3)}


@pytest.mark.parametrize(
    ("recorded", "ports", "unplaced"),
    [
        # Supermicro SMB: no dot1dBasePortIfIndex; the port is the interface's index.
        (
            walk(names=named(1, "eth0/{}"), descriptions=named(1, "ethernet 0/{}"), q={A: 1, B: 2}),
            {"eth0/1": {MAC_A}, "eth0/2": {MAC_B}},
            0,
        ),
        # TP-Link JetStream: interfaces are 49153 and up, ports the numbers on the front.
        (
            walk(names=named(49153, "gi1/0/{}"), q={A: 1, B: 3}),
            {"gi1/0/1": {MAC_A}, "gi1/0/3": {MAC_B}},
            0,
        ),
        # Microsens G6: the table exists, but addresses are at interface indexes.
        (
            walk(names=named(1001, "{}/1"), ports={"1": 1001, "2": 1002}, d={A: 1001, B: 1002}),
            {"1/1": {MAC_A}, "2/1": {MAC_B}},
            0,
        ),
        # 3Com 4200: ifName is there but empty.
        (
            walk(names=named(101, ""), descriptions=named(101, "RMON Port 0{} on unit 1"),
                 ports={"1": 101, "2": 102, "3": 103}, d={A: 1, B: 2, C: 3}),
            {"RMON Port 01 on unit 1": {MAC_A}, "RMON Port 02 on unit 1": {MAC_B}, "RMON Port 03 on unit 1": {MAC_C}},
            0,
        ),
        # A few rows by VLAN do not hide those by address alone; of one address, that by VLAN holds.
        (
            walk(names=named(1, "p{}"), ports={"1": 1, "2": 2, "3": 3}, q={A: 1}, d={A: 3, B: 2, C: 0}),
            {"p1": {MAC_A}, "p2": {MAC_B}},
            0,
        ),
        # Two interfaces of one name: nobody can tell them apart. Ports beyond the interfaces are counted.
        (
            walk(names={"1": "Te 1/33", "2": "Te 1/33", "3": "Te 1/34"}, ports={"1": 1, "2": 2, "3": 3},
                 q={A: 1, B: 3, C: 77}),
            {"Te 1/34": {MAC_B}},
            2,
        ),
    ],
    ids=["supermicro", "tp-link", "microsens", "3com", "both tables", "equal names"],
)  # fmt: skip
async def test_each_address_is_at_the_interface_that_the_switch_means(
    recorded: dict[str, Any], ports: dict[str, set[str]], unplaced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def session(*_: object) -> AsyncIterator[Session]:
        yield session_of(recorded)

    monkeypatch.setattr(snmp, "snmp_session", session)
    monkeypatch.setattr(snmp, "secrets_of", lambda _: Secrets())
    table = await read_forwarding(SWITCH)
    assert ({port: set(macs) for port, macs in table.ports.items()}, table.unplaced) == (ports, unplaced)


async def test_names_keep_their_rank_where_one_is_missing() -> None:
    recorded = {f"{NAME}.1": "a", f"{DESCRIPTION}.2": "port two", f"{ALIAS}.2": "to a", f"{DESCRIPTION}.1": ""}
    assert await session_of(recorded).names() == {1: ("a", "", ""), 2: ("", "port two", "to a")}
