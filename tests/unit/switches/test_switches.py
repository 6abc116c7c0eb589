"""What switches answer becomes counters or is refused, never a 0; names of ports; credentials; forwarding tables."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock, patch

import pytest
from jumping_clock import JumpingClock
from pysnmp.hlapi.v3arch import asyncio as hlapi
from pysnmp.proto import rfc1902

from rigctl.base.errors import NodeError
from rigctl.rig.inventory import Secrets, Snmp, Switch
from rigctl.switches import snmp
from rigctl.switches.cli import Clearing, PortAnswer, UnreadableError, cisco_ios, dell_os9
from rigctl.switches.reading import find_ports, port_name
from rigctl.switches.secrets import switch_secrets
from rigctl.switches.snmp import SnmpSession, read_count, read_forwarding, read_name

FIXTURES = Path(__file__).parents[1] / "fixtures" / "switches"
NEVER = (float("inf"), float("inf"))
Parse = Callable[[str], PortAnswer]
DIALECTS = pytest.mark.parametrize(("parse", "name"), [(cisco_ios, "cisco_ios"), (dell_os9, "dell_os9")])
COUNTERS = [f"{way}_{what}" for what in ("octets", "packets", "discards", "errors") for way in ("in", "out")]


def printed(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_an_interface_is_read_whole() -> None:
    octets, packets = (27_359_644, 117_562_001_234_567), (414_540, 77_671_230_552)
    ios, os9 = cisco_ios(printed("cisco_ios")), dell_os9(printed("dell_os9"))
    assert (ios.name, ios.cleared_s_ago) == ("GigabitEthernet2/1", (1046, 1047))
    assert ios.counters == dict(zip(COUNTERS, (*octets, *packets, 3, 553, 7, 2), strict=True))
    assert (os9.name, os9.cleared_s_ago) == ("GigabitEthernet 1/1", (219960, 220020))
    # Its errors are runts, giants, CRC and overruns.
    assert os9.counters == dict(zip(COUNTERS, (*octets[::-1], *packets[::-1], 11, 553, 10, 4), strict=True))


@DIALECTS
def test_a_text_that_lacks_any_of_its_counters_is_refused(parse: Parse, name: str) -> None:
    lines = printed(name).splitlines()
    refused = 0
    for at in range(len(lines)):
        shorter = "\n".join(lines[:at] + lines[at + 1 :])
        try:
            # A line that holds no counter may go; then nothing changes.
            assert parse(shorter) == parse(printed(name))
        except UnreadableError:
            refused += 1
    assert refused >= 6


@DIALECTS
def test_an_answer_that_ends_anywhere_is_whole_or_refused(parse: Parse, name: str) -> None:
    whole = printed(name)
    expected = parse(whole).counters
    for end in range(0, len(whole), 7):
        # Cut inside a number there would be another number: only at the end of a line is there nothing to see.
        cut = whole[:end].rpartition("\n")[0]
        try:
            assert parse(cut).counters == expected
        except UnreadableError as error:
            assert str(error)


def test_when_counters_were_cleared_is_bounded_by_what_is_printed() -> None:
    bounds = {"never": NEVER, "00:00:00": (0, 1), "23:59:59": (86399, 86400), "5m30s": (330, 331)}
    bounds |= {"7h": (25200, 28800), "1d02h": (93600, 97200), "2d13h6m": (219960, 220020)}
    bounds |= {"2w3d": (1468800, 1555200), "34w5d18h": (21060000, 21063600), "1y5w": (34560000, 35164800)}
    for parse, name, printed_ago in ((cisco_ios, "cisco_ios", "00:17:26"), (dell_os9, "dell_os9", "2d13h6m")):
        text = printed(name)
        assert {ago: parse(text.replace(printed_ago, ago)).cleared_s_ago for ago in bounds} == bounds


@pytest.mark.parametrize("state", ["reset", "initializing", "up (looped)", "standby mode", "administratively down"])
def test_an_interface_in_any_state_has_its_counters(state: str) -> None:
    text = printed("cisco_ios")
    shown = cisco_ios(re.sub(r" is \w+, line protocol", f" is {state}, line protocol", text, count=1))
    assert shown == cisco_ios(text)


def test_a_clearing_changes_the_number_and_time_does_not() -> None:
    def numbers(*readings: tuple[float, tuple[float, float]]) -> list[int]:
        clearing = Clearing()
        return [clearing.number(now_s, ago) for now_s, ago in readings]

    # Cleared at 100; what is printed has seconds until a day is over, then hours.
    assert numbers((130, (30, 31)), (131.4, (31, 32)), (5000.9, (4900, 4901)), (99100, (97200, 100800))) == [0] * 4
    assert numbers((1000, (900, 901)), (1010, (5, 6)), (1020, (15, 16))) == [0, 1, 1]
    assert numbers((10, NEVER), (20, NEVER), (30, (1, 2)), (40, NEVER)) == [0, 0, 1, 2]  # the first, and a restart


@DIALECTS
@pytest.mark.parametrize("filling", ["\n", " ", "1", "Input Statistics:\n", "Input queue: 1/1/", "\t\n"])
def test_whatever_a_switch_prints_it_is_refused_without_backtracking(parse: Parse, name: str, filling: str) -> None:
    """A pattern that does takes minutes at this size, until the deadline of all tests."""
    for text in ("", "  ^\n% Invalid input detected at '^' marker.\n", "\x00\xff" * 50):
        with pytest.raises(UnreadableError, match=r"the switch prints|the switch reports"):
            parse(text)
    for text in (filling * (60_000 // len(filling)), printed(name).splitlines()[0] + "\n" + filling * 3000):
        with pytest.raises(UnreadableError):
            parse(text)
    with pytest.raises(UnreadableError, match="longer than 65536 characters"):
        parse(filling * 70_000)


KNOWN = {
    1: ("Gi1/1", "GigabitEthernet1/1", "node001"),
    2: ("Gi1/11", "GigabitEthernet1/11", ""),
    3: ("Te1/1", "TenGigabitEthernet1/1", "to the core"),
    4: ("Gi 2/1", "GigabitEthernet 2/1", ""),
}


def test_a_name_is_found_whole_or_by_how_its_word_begins() -> None:
    found = {"Gi1/1": 1, "gigabitethernet1/1": 1, "node001": 1, "Gig1/11": 2, "Ten1/1": 3, "to the core": 3}
    found |= {"Gi2/1": 4, "GigabitEthernet 2/1": 4}
    assert find_ports(found, KNOWN) == (found, {})


def test_a_name_that_fits_none_is_missing_with_the_nearest() -> None:
    names = ["Gi1", "1/1", "Gi1/2", "Fa1/1", "", "/1"]
    found, missing = find_ports(names, KNOWN)
    assert (found, list(missing)) == ({}, names)
    for name, reason in missing.items():
        said, _, near = reason.partition(" Similar: ")
        assert said == f'it has no interface "{name}".'
        assert len(near.split(", ")) in (1, 2, 3)


def test_a_name_that_fits_two_is_refused_with_both() -> None:
    two = {1: ("Gi1/1", "", ""), 2: ("Gig1/1", "", "")}
    both = '"G1/1" fits 2 of its interfaces: 1 (Gi1/1), 2 (Gig1/1). Use a name of only one interface, or "ifIndex 1"'
    assert find_ports(["G1/1", "ifIndex 2", "2"], two)[0] == {"ifIndex 2": 2}
    assert find_ports(["G1/1"], two) == ({}, {"G1/1": both})
    assert find_ports(["Gi1/1"], two)[0] == {"Gi1/1": 1}  # the same name wins


DESCRIBED = {
    1: ("Gi1/0/1", "GigabitEthernet1/0/1", "Gi1/0/2"),  # the port at the far end
    2: ("Gi1/0/2", "GigabitEthernet1/0/2", ""),
    3: ("Gi1/0/3", "GigabitEthernet1/0/3", "uplink"),
    4: ("", "TenGigabitEthernet 1/33", "uplink"),
    5: ("", "TenGigabitEthernet 1/33", ""),
    6: ("ether5", "ether5", ""),
    7: ("bridge", "bridge", ""),
}


def test_names_are_ranked_and_a_tie_is_refused() -> None:
    indexes = {"Gi1/0/2": 2, "GigabitEthernet1/0/2": 2, "gig1/0/2": 2, "bridge/ether5": 6}
    several, none = ("Te 1/33", "TenGigabitEthernet 1/33", "uplink"), "vlan/ether5"
    found, refused = find_ports([*indexes, *several, none], DESCRIBED)
    assert found == indexes
    fit_two = {name: "fits 2 of its interfaces" in said for name, said in refused.items()}
    assert fit_two == dict.fromkeys(several, True) | {none: False}


def test_a_port_has_the_first_name_by_which_it_is_found() -> None:
    names = [f"Gi1/0/{index}" for index in (1, 2, 3)] + [None, None, "ether5", "bridge", None]
    assert [port_name(index, DESCRIBED) for index in range(1, 9)] == names


def test_what_is_no_count_is_unknown() -> None:
    texts = [rfc1902.OctetString("abc"), rfc1902.OctetString(""), rfc1902.IpAddress("1.2.3.4")]
    others = [rfc1902.Integer32(-5), rfc1902.ObjectIdentifier("1.3.6")]
    assert {read_count(each) for each in (*texts, *others)} == {None}


def test_a_name_commands_no_terminal_and_one_that_is_a_number_takes_no_memory() -> None:
    # `bytes(number)` would be gigabytes of zeros.
    assert read_name(rfc1902.Integer32(2**31 - 1)) == read_name(rfc1902.Counter64(2**64 - 1)) == ""
    assert read_name(rfc1902.OctetString(b"\x1b[2J\xe2\x80\xae\xff" * 1000)).startswith("?[2J?")
    assert len(read_name(rfc1902.OctetString(b"\x1b" * 65535))) == 255


class Endless(SnmpSession):
    """A switch whose table begins again and again, or whose answers come late."""

    asked = 0

    def __init__(self) -> None:
        super().__init__(SWITCH, cast(Any, None), None, None, None)

    def _bindings(self, answer: tuple[Any, Any, Any, Any]) -> Any:
        self.asked += 1
        return [(f"1.2.{number}", rfc1902.Integer32(1)) for number in (7, 8, 9)]


SWITCH = Switch("core-1", "Core", address="10.0.0.1", snmp=Snmp())


async def test_a_table_that_begins_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlapi, "bulk_cmd", AsyncMock(return_value=(None, 0, 0, ())))
    endless = Endless()
    assert (len(await endless.walk("1.2", 10_000)), endless.asked) == (3, 2)


async def test_a_table_whose_rows_are_not_in_order_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """TP-Link answers so (LibreNMS reads its table with allowUnordered)."""
    rows = iter([(9, 3), (5, 4), (1, 9)])
    told = [(f"1.2.{number}", rfc1902.Integer32(1)) for pair in rows for number in pair]
    monkeypatch.setattr(hlapi, "bulk_cmd", AsyncMock(side_effect=[(None, 0, 0, told[:2]), (None, 0, 0, told[2:])] * 2))
    session = SnmpSession(SWITCH, cast(Any, None), None, None, None)
    assert [index for index, _ in await session.walk("1.2", 6)] == [(9,), (3,), (5,), (4,), (1,)]


async def test_a_table_that_is_never_read_whole_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    JumpingClock(monkeypatch)
    monkeypatch.setattr(hlapi, "bulk_cmd", late)
    with pytest.raises(NodeError, match=f"the switch did not send a table within {snmp.WALK_S:g} s"):
        await Endless().walk("1.2", 10)


def written(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "credentials.yaml"
    path.write_text(text)
    path.chmod(mode)
    return {"RIGCTL_CREDENTIALS": str(path)}


def secrets_in(environment: dict[str, str]) -> Secrets:
    with patch.dict(os.environ, {"XDG_CONFIG_HOME": "/nowhere"} | environment):
        return switch_secrets(SWITCH)


def test_the_environment_names_the_switch_in_capitals() -> None:
    given = {"RIGCTL_CORE_1_COMMUNITY": "c", "RIGCTL_CORE_1_ENABLE": "e", "RIGCTL_OTHER_USER": "x"}
    assert secrets_in(given) == Secrets(community="c", enable="e")


def test_a_file_has_a_section_per_switch_and_a_variable_wins_over_it(tmp_path: Path) -> None:
    given = written(tmp_path, "core-1: {user: monitor, auth: one, priv: two}\nother: {community: x}\n")
    assert secrets_in(given) == Secrets(user="monitor", auth="one", priv="two")
    assert secrets_in(given | {"RIGCTL_CORE_1_AUTH": "three"}).auth == "three"


def refused(folder: Path, text: str, mode: int = 0o600) -> str:
    with pytest.raises(NodeError) as caught:
        secrets_in(written(folder, text, mode))
    assert "topsecret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_is_open_to_others_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    said = refused(tmp_path, "core-1: {community: topsecret}\n", mode)
    assert f"is open to others: chmod 600 {tmp_path / 'credentials.yaml'}" in said


SECTIONS = ["topsecret", "{comunity: topsecret}", "[topsecret]", "{community: *topsecret}"]


@pytest.mark.parametrize("text", [*[f"core-1: {section}\n" for section in SECTIONS], "{topsecret", "topsecret"])
def test_a_file_that_is_none_is_refused_without_telling_what_is_in_it(tmp_path: Path, text: str) -> None:
    assert "credentials.yaml" in refused(tmp_path, text)


def test_secrets_are_in_no_text_of_them() -> None:
    names = ("community", "auth", "priv", "password", "enable")
    assert "topsecret" not in repr(Secrets(**dict.fromkeys(names, "topsecret")))


# Forwarding tables of switches as they number their ports, from walks of the kind that LibreNMS records of them.
NAME, DESCRIPTION, ALIAS = "1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.31.1.1.1.18"
BASE_PORT, BASE_NUMBER, ADDRESS = "1.3.6.1.2.1.17.1.4.1.2", "1.3.6.1.2.1.17.1.4.1.1", "1.3.6.1.2.1.17.4.3.1.1"
BY_VLAN, BY_MAC = "1.3.6.1.2.1.17.7.1.2.2.1.2", "1.3.6.1.2.1.17.4.3.1.2"
A, B, C = ("222.94.161.225.121.46", "202.123.106.163.144.47", "2.0.0.0.0.9")
ALIKE, FROM_101 = {"1": 1, "2": 2, "3": 3}, {"1": 101, "2": 102, "3": 103}
MAC_A, MAC_B, MAC_C = ("de:5e:a1:e1:79:2e", "ca:7b:6a:a3:90:2f", "02:00:00:00:00:09")


class Recorded(SnmpSession):
    """A session that answers from a walk: OID → value. Nothing is sent."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        super().__init__(SWITCH, cast(Any, None), None, None, None)
        self.recorded = recorded

    async def text(self, oid: str) -> str | None:
        return None

    async def walk(self, column: str, most: int) -> list[tuple[tuple[int, ...], Any]]:
        kind = rfc1902.OctetString if column in (NAME, DESCRIPTION, ALIAS, ADDRESS) else rfc1902.Integer32
        below = [(oid.removeprefix(f"{column}."), value) for oid, value in self.recorded.items() if f"{column}." in oid]
        return [(tuple(map(int, index.split("."))), kind(value)) for index, value in below]


def walk(**columns: dict[str, Any]) -> dict[str, Any]:
    """Interfaces with these rows of `names`, `descriptions`, `ports`, `numbers`, `macs`, `q`, `r` (VLANs 1, 2), `d`."""
    places = {"names": NAME, "descriptions": DESCRIPTION, "ports": BASE_PORT, "numbers": BASE_NUMBER, "macs": ADDRESS}
    places |= {"q": f"{BY_VLAN}.1", "r": f"{BY_VLAN}.2", "d": BY_MAC}
    return {f"{places[kind]}.{index}": value for kind, rows in columns.items() for index, value in rows.items()}


def named(first: int, form: str) -> dict[str, str]:
    return {str(first + number): form.format(number + 1) for number in range(3)}


# Supermicro SMB: no dot1dBasePortIfIndex; the port is the interface's index.
SUPERMICRO = walk(names=named(1, "eth0/{}"), descriptions=named(1, "ethernet 0/{}"), q={A: 1, B: 2})
# 3Com 4200: ifName is there but empty.
OF_3COM = walk(names=named(101, ""), descriptions=named(101, "Port 0{}"), ports=FROM_101, d={A: 1, B: 2, C: 3})
# A few rows by VLAN do not hide those by address alone; of one address, that by VLAN holds.
BOTH_TABLES = walk(names=named(1, "p{}"), ports=ALIKE, q={A: 1}, d={A: 3, B: 2, C: 0})
# Two interfaces of one name: nobody can tell them apart. Ports beyond the interfaces are counted.
EQUAL_NAMES = walk(names={"1": "Te 1/33", "2": "Te 1/33", "3": "Te 1/34"}, ports=ALIKE, q={A: 1, B: 3, C: 77})
# Rows of LibreNMS, tests/snmpsim/NAME.snmprec (0367517c), with other addresses. NAME is the id of the case.
# MikroTik: dot1dTpFdbPort is the interface's index, also where a bridge port has that number.
CRS317 = walk(names={"8": "sfpplus8", "12": "sfpplus12", "22": "trunk"}, ports={"22": 8, "42": 12}, d={A: 22, B: 12})
# Dell SONiC: indexes too; bridge port 53 does not exist, 48 is another port.
SONIC = walk(names={"48": "Eth1/48", "49": "Eth1/49", "53": "Eth1/53"}, ports={"48": 49, "52": 53}, q={A: 48, B: 53})
# FortiSwitch: neither the address nor the bridge port is in an index, but in a column of its own.
FORTI_MACS = {"1": bytes.fromhex(MAC_A.replace(":", "")), "13": bytes.fromhex(MAC_B.replace(":", ""))}
FORTI = walk(
    names={"9": "port9", "52": "port52", "55": "MLAG0"}, ports={"9": 9, "52": 55}, numbers={"9": 9, "52": 32768}
)
FORTI |= walk(macs=FORTI_MACS, d={"1": 32768, "13": 9})
# Aruba: port 36 is not interface 36, since bridge ports are not numbered by interfaces; its own table is cut off.
ARUBAOS = walk(names={"36": "ge0/0/35", "129": "p1"}, ports={"161": 129}, q={A: 36, B: 80})
# Extreme VOSS: all bridge ports are at interface 0; trunks have no interface.
VOSS = walk(names={"192": "1/1", "323": "3/4"}, ports={"192": 0, "323": 0}, q={A: 323, B: 6144})
# TP-Link: port 1 is not the interface of VLAN 1.
SG2218P = walk(names={"1": "Vlan-interface1"} | named(49153, "gi1/0/{}"), ports={"49153": 49153}, q={A: 1, B: 3})
# Extreme SLX knows addresses, but says of none where; Huawei says -1.
SLX9150 = walk(names=named(1, "Ethernet 0/{}"), ports=ALIKE, q={A: 0, B: 0}, d={C: -1})
# An address in two VLANs is at two ports (VOSS, SNR, D-Link).
TWO_VLANS = walk(names=named(1, "p{}"), ports=ALIKE, q={A: 1, B: 2}, r={A: 3})


@pytest.mark.parametrize(
    ("recorded", "names", "unplaced"),
    [
        pytest.param(SUPERMICRO, ("eth0/1", "eth0/2"), 0, id="supermicro"),
        pytest.param(OF_3COM, ("Port 01", "Port 02", "Port 03"), 0, id="3com"),
        pytest.param(BOTH_TABLES, ("p1", "p2"), 1, id="both tables"),
        pytest.param(EQUAL_NAMES, (None, "Te 1/34"), 2, id="equal names"),
        pytest.param(CRS317, ("trunk", "sfpplus12"), 0, id="routeros_crs317"),
        pytest.param(SONIC, ("Eth1/48", "Eth1/53"), 0, id="dell-sonic"),
        pytest.param(FORTI, ("MLAG0", "port9"), 0, id="fortiswitch_148f-fpoe"),
        pytest.param(ARUBAOS, (), 2, id="arubaos"),
        pytest.param(VOSS, ("3/4",), 1, id="voss_8608"),
        pytest.param(SG2218P, ("gi1/0/1", "gi1/0/3"), 0, id="jetstream_sg2218p"),
        pytest.param(SLX9150, (), 3, id="slxos_slx9150"),
        pytest.param(TWO_VLANS, ("p1", "p2", "p3"), 0, id="two VLANs"),
    ],
)
async def test_each_address_is_at_the_interface_that_the_switch_means(
    recorded: dict[str, Any], names: tuple[str | None, ...], unplaced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def session(*_: object) -> AsyncIterator[SnmpSession]:
        yield Recorded(recorded)

    monkeypatch.setattr(snmp, "snmp_session", session)
    monkeypatch.setattr(snmp, "switch_secrets", lambda _: Secrets())
    table = await read_forwarding(SWITCH)
    macs = (MAC_A, MAC_B, MAC_A if recorded is TWO_VLANS else MAC_C)
    ports = {name: frozenset({mac}) for name, mac in zip(names, macs, strict=False) if name}
    assert (table.ports, len(table.unplaced)) == (ports, unplaced)


async def test_names_keep_their_rank_where_one_is_missing() -> None:
    recorded = {f"{NAME}.1": "a", f"{DESCRIPTION}.2": "port two", f"{ALIAS}.2": "to a", f"{DESCRIPTION}.1": ""}
    assert await Recorded(recorded).names() == {1: ("a", "", ""), 2: ("", "port two", "to a")}
