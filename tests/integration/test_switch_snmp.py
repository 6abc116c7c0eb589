"""Counters by SNMP v2c and v3, against a real snmpd that serves this machine's loopback interface."""

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from processes import DEADLINE_S, eventually_async
from snmp_agent import snmpd

from rigctl.base.errors import NodeError
from rigctl.check.gather import read_ports
from rigctl.records import Link, Port
from rigctl.rig.inventory import Node, Rig, Secrets, Snmp, Switch
from rigctl.switches import PortCounters, Reader, reader_of
from rigctl.virtual.snmpd import read_anew

COMMUNITY, CONTROL, AUTH, PRIV = "only-for-tests", "only-to-set", "authenticate-me", "keep-it-private"
CONFIG = f"""\
rocommunity {COMMUNITY} 127.0.0.1
rwcommunity {CONTROL} 127.0.0.1
createUser plain SHA {AUTH}
createUser sealed SHA {AUTH} AES {PRIV}
createUser strong SHA-256 {AUTH} AES {PRIV}
rouser plain auth
rouser sealed priv
rouser strong priv
"""
V2C = Switch("core", "Core", address="127.0.0.1", snmp=Snmp(), secrets=Secrets(community=COMMUNITY))


def sealed(**fields: Any) -> Switch:
    """`V2C` asked by version 3, as the user that must seal what it says."""
    secrets = replace(Secrets(user="sealed", auth=AUTH, priv=PRIV), **fields.pop("secrets", {}))
    return replace(V2C, snmp=replace(Snmp(version="3"), **fields), secrets=secrets)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an snmpd that all tests share."""
    with snmpd(tmp_path_factory.mktemp("snmpd"), CONFIG, COMMUNITY) as (number, _):
        yield number


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    with snmpd(tmp_path, CONFIG, COMMUNITY) as made:
        yield made


def at(switch: Switch, port: int) -> Switch:
    assert switch.snmp is not None
    return replace(switch, snmp=replace(switch.snmp, port=port))


async def refused(switch: Switch, port: int, interface: str = "lo") -> str:
    with pytest.raises(NodeError) as caught:
        async with reader_of(at(switch, port), [interface]) as reader:
            await reader.read()
    said = str(caught.value)
    assert not any(secret in said for secret in (COMMUNITY, AUTH, PRIV, "wrong-one"))
    return said


async def test_in_every_version_counters_rise_by_what_went_over_the_interface(port: int) -> None:
    switches = [V2C, sealed(), sealed(auth="sha256", secrets={"user": "strong"})]
    switches.append(sealed(secrets={"user": "plain", "priv": None}))
    async with contextlib.AsyncExitStack() as stack:
        # By habit snmpd looks every 3 s, and leaves out a rise of more than 4 GiB between two looks: tests beside this
        # one move so much over this machine's loopback interface.
        assert await read_anew(CONTROL, ("127.0.0.1", port))
        readers = [await stack.enter_async_context(reader_of(at(switch, port), ["lo"])) for switch in switches]
        before_ns = time.monotonic_ns()
        firsts = [(await reader.read())["lo"] for reader in readers]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(200):
                sender.sendto(bytes(10_000), ("127.0.0.1", 9))
        for reader, first in zip(readers, firsts, strict=True):
            second = await eventually_async(partial(risen, reader, first, 200 * 10_000))
            assert second is not None
            assert reader.source == "snmp"
            assert before_ns < first.t_ns < second.t_ns < time.monotonic_ns()
            assert (first.took_ns or 0) > 0
            assert (second.in_packets or 0) >= (first.in_packets or 0) + 200
            assert first.discontinuity == second.discontinuity
            assert None not in (first.in_octets, first.out_octets, first.in_discards, first.out_discards)
            assert None not in (first.in_errors, first.out_errors)


async def risen(reader: Reader, first: PortCounters, octets: int) -> PortCounters | None:
    """Return a reading that is `octets` above `first`: octets on their way are not counted yet."""
    now = (await reader.read())["lo"]
    return now if (now.in_octets or 0) - (first.in_octets or 0) >= octets else None


async def test_a_check_reads_ports_and_does_without_a_silent_switch(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.check.gather.SWITCH_DEADLINE_S", DEADLINE_S)
    nodes = {name: Node(name, "127.0.0.1", Link(None, None, "core")) for name in ("a", "b")}
    ports = (Port("core", "lo", node="a"), Port("core", "lo0", node="b"))
    rig = Rig("lab", "lab", nodes, None, switches={"core": at(V2C, port)}, ports=ports[:1])
    (counters,) = (await read_ports(rig, ["a", "b"])).values()
    assert (counters.out_packets or 0) > 0
    assert counters.out_discards is not None
    assert await read_ports(rig, ["b"]) == {}
    assert await read_ports(replace(rig, ports=ports), ["a", "b"]) == {}
    wrong = replace(at(V2C, port), secrets=Secrets(community="wrong-one"))
    assert await read_ports(replace(rig, switches={"core": wrong}), ["a"]) == {}


async def test_what_does_not_fit_is_said_with_what_to_check(port: int) -> None:
    assert (await refused(V2C, port, "l0")).startswith('core: it has no interface "l0". Similar: lo')
    place = f"127.0.0.1, UDP port {port}"
    wrong_users = (sealed(secrets={"auth": "wrong-one-too"}), sealed(secrets={"user": "nobody"}), sealed(auth="sha256"))
    community, sealing, *users = await asyncio.gather(
        refused(replace(V2C, secrets=Secrets(community="wrong-one")), port),
        refused(sealed(secrets={"priv": "wrong-one-too"}), port),
        *(refused(wrong, port) for wrong in wrong_users),
    )
    advice = "Is the switch on, does it allow this machine, is the community right?"
    assert community == f"core: no SNMP answer from {place}. {advice}"
    for said in users:
        assert said.startswith(f"core: SNMP on {place} refused: ")
        assert said.endswith("Check the user, its passphrases and protocols")
    # A message that can't be opened is dropped in silence (RFC 3414, 3.2).
    assert sealing.startswith("core: ")
    assert place in sealing


@pytest.mark.parametrize(
    ("switch", "variable"),
    [
        (replace(V2C, secrets=Secrets()), "RIGCTL_CORE_COMMUNITY"),
        (sealed(secrets={"user": None}), "RIGCTL_CORE_USER"),
        (sealed(secrets={"auth": None}), "RIGCTL_CORE_AUTH"),
    ],
)
async def test_a_secret_that_is_missing_is_named_by_its_variable(switch: Switch, variable: str) -> None:
    assert f"set {variable}" in await refused(switch, 9)


async def test_an_agent_that_dies_between_two_readings_is_said(mortal: tuple[int, "subprocess.Popen[bytes]"]) -> None:
    number, process = mortal
    async with reader_of(at(V2C, number), ["lo"]) as reader:
        await reader.read()
        process.kill()
        process.wait(DEADLINE_S)
        with pytest.raises(NodeError, match=r"core: no SNMP answer from 127\.0\.0\.1"):
            await reader.read()
