"""What switches answer becomes counters or is refused, never a 0; names of ports; credentials."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from jumping_clock import JumpingClock
from pysnmp.hlapi.v3arch import asyncio as hlapi
from pysnmp.proto import rfc1902

from rigctl.base.errors import NodeError
from rigctl.probe.switches import snmp
from rigctl.probe.switches.cli import Clearing, Shown, UnreadableError, cisco_ios, dell_os9
from rigctl.probe.switches.reading import port_name, resolved
from rigctl.probe.switches.secrets import secrets_of
from rigctl.probe.switches.snmp import Session, text_of, whole
from rigctl.rig.inventory import Secrets, Snmp, Switch

FIXTURES = Path(__file__).parents[1] / "fixtures" / "switches"
Parse = Callable[[str], Shown]
DIALECTS = pytest.mark.parametrize(
    ("parse", "name"), [(cisco_ios, "cisco_ios"), (dell_os9, "dell_os9")], ids=["ios", "os9"]
)


def printed(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_an_interface_of_ios_is_read_whole() -> None:
    shown = cisco_ios(printed("cisco_ios"))
    assert shown.name == "GigabitEthernet2/1"
    assert shown.counters == {
        "in_octets": 27_359_644,
        "out_octets": 117_562_001_234_567,
        "in_packets": 414_540,
        "out_packets": 77_671_230_552,
        "in_discards": 3,
        "out_discards": 553,
        "in_errors": 7,
        "out_errors": 2,
    }
    assert shown.cleared_s_ago == (1046, 1047)


def test_an_interface_of_os9_is_read_whole() -> None:
    shown = dell_os9(printed("dell_os9"))
    assert shown.name == "GigabitEthernet 1/1"
    assert shown.counters == {
        "in_octets": 117_562_001_234_567,
        "out_octets": 27_359_644,
        "in_packets": 77_671_230_552,
        "out_packets": 414_540,
        "in_discards": 11,
        "out_discards": 553,
        "in_errors": 10,  # runts, giants, CRC and overruns
        "out_errors": 4,
    }
    assert shown.cleared_s_ago == (219960, 220020)


@DIALECTS
def test_a_text_that_lacks_any_of_its_counters_is_refused(parse: Parse, name: str) -> None:
    lines = printed(name).splitlines()
    needed = ("packets", "Last clearing", "Input queue", "errors", "runts", "CRC", "discarded", "Statistics", " is up")
    refused = 0
    for at, line in enumerate(lines):
        if not any(word in line for word in needed):
            continue
        shorter = "\n".join(lines[:at] + lines[at + 1 :])
        try:
            # A line that holds no counter may go; then nothing changes.
            assert parse(shorter) == parse(printed(name))
        except UnreadableError:
            refused += 1
    assert refused >= 6


@DIALECTS
@pytest.mark.parametrize("text", ["", "\n\n", "  ^\n% Invalid input detected at '^' marker.\n", "\x00\xff" * 50])
def test_an_answer_that_is_no_interface_is_refused(parse: Parse, name: str, text: str) -> None:
    with pytest.raises(UnreadableError, match=r"it prints|it reports"):
        parse(text)


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


@pytest.mark.parametrize(
    ("ago", "seconds"),
    [
        ("never", None),
        ("00:00:00", (0, 1)),
        ("23:59:59", (86399, 86400)),
        ("1d02h", (93600, 97200)),
        ("2w3d", (1468800, 1555200)),
        ("1y5w", (34560000, 35164800)),
        ("2d13h6m", (219960, 220020)),  # OS9, as in dell_os9.txt
        ("34w5d18h", (21060000, 21063600)),
        ("5m30s", (330, 331)),
        ("7h", (25200, 28800)),
    ],
)
def test_when_counters_were_cleared_is_bounded_by_what_is_printed(ago: str, seconds: tuple[int, int] | None) -> None:
    assert cisco_ios(printed("cisco_ios").replace("00:17:26", ago)).cleared_s_ago == seconds
    assert dell_os9(printed("dell_os9").replace("2d13h6m", ago)).cleared_s_ago == seconds


@pytest.mark.parametrize("state", ["reset", "initializing", "up (looped)", "standby mode", "administratively down"])
def test_an_interface_in_any_state_has_its_counters(state: str) -> None:
    text = printed("cisco_ios")
    shown = cisco_ios(re.sub(r" is \w+, line protocol", f" is {state}, line protocol", text, count=1))
    assert shown == cisco_ios(text)


class TestClearing:
    """A number that changes when counters were cleared, and not because time goes by."""

    def test_time_that_goes_by_changes_nothing(self) -> None:
        clearing = Clearing()
        # Cleared at 100; what is printed has seconds until a day is over, then hours.
        numbers = [clearing.number(now_s, (int(now_s - 100), int(now_s - 100) + 1)) for now_s in (130.0, 131.4, 5000.9)]
        ago_s = 86_400 + 3 * 3600
        numbers.append(clearing.number(100.0 + ago_s + 1800, (ago_s, ago_s + 3600)))
        assert numbers == [0, 0, 0, 0]

    def test_a_clearing_between_two_readings_is_seen(self) -> None:
        clearing = Clearing()
        assert clearing.number(1000.0, (900, 901)) == 0
        assert clearing.number(1010.0, (5, 6)) == 1
        assert clearing.number(1020.0, (15, 16)) == 1

    def test_the_first_clearing_of_all_and_a_restart_are_seen(self) -> None:
        clearing = Clearing()
        assert [clearing.number(10.0, None), clearing.number(20.0, None)] == [0, 0]
        assert clearing.number(30.0, (1, 2)) == 1
        assert clearing.number(40.0, None) == 2


@DIALECTS
@pytest.mark.parametrize("filling", ["\n", " ", "1", "Input Statistics:\n", "Input queue: 1/1/", "\t\n"])
def test_whatever_a_switch_prints_it_is_refused_without_backtracking(parse: Parse, name: str, filling: str) -> None:
    """A pattern that does takes minutes at this size, until the deadline of all tests."""
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


@pytest.mark.parametrize(
    ("name", "index"),
    [("Gi1/1", 1), ("gigabitethernet1/1", 1), ("node001", 1), ("Gig1/11", 2), ("Ten1/1", 3), ("to the core", 3),
     ("Gi2/1", 4), ("GigabitEthernet 2/1", 4)],
)  # fmt: skip
def test_a_name_is_found_whole_or_by_how_its_word_begins(name: str, index: int) -> None:
    assert resolved([name], KNOWN) == ({name: index}, {})


@pytest.mark.parametrize("name", ["Gi1", "1/1", "Gi1/2", "Fa1/1", "", "/1"])
def test_a_name_that_fits_none_is_missing_with_the_nearest(name: str) -> None:
    found, missing = resolved([name], KNOWN)
    assert found == {}
    said, _, near = missing[name].partition(" Similar: ")
    assert said == f'it has no interface "{name}".'
    assert len(near.split(", ")) in (1, 2, 3)


def test_a_name_that_fits_two_is_refused_with_both() -> None:
    two = {1: ("Gi1/1", "", ""), 2: ("Gig1/1", "", "")}
    found, refused = resolved(["G1/1"], two)
    assert (found, refused["G1/1"]) == (
        {},
        '"G1/1" fits 2 of its interfaces: 1 (Gi1/1), 2 (Gig1/1). Use a name that only one has',
    )
    assert resolved(["Gi1/1"], two)[0] == {"Gi1/1": 1}  # the same name wins


DESCRIBED = {
    1: ("Gi1/0/1", "GigabitEthernet1/0/1", "Gi1/0/2"),  # the port at the far end
    2: ("Gi1/0/2", "GigabitEthernet1/0/2", ""),
    3: ("Gi1/0/3", "GigabitEthernet1/0/3", "uplink"),
    4: ("", "TenGigabitEthernet 1/33", "uplink"),
    5: ("", "TenGigabitEthernet 1/33", ""),
    6: ("ether5", "ether5", ""),
    7: ("bridge", "bridge", ""),
}


@pytest.mark.parametrize(
    ("name", "index"),
    [("Gi1/0/2", 2), ("GigabitEthernet1/0/2", 2), ("gig1/0/2", 2), ("bridge/ether5", 6), ("vlan/ether5", None),
     ("Te 1/33", None), ("TenGigabitEthernet 1/33", None), ("uplink", None)],
)  # fmt: skip
def test_names_are_ranked_and_a_tie_is_refused(name: str, index: int | None) -> None:
    found, refused = resolved([name], DESCRIBED)
    assert found.get(name) == index
    assert ("fits 2 of its interfaces" in refused.get(name, "")) == (index is None and name != "vlan/ether5")


def test_a_port_has_the_first_name_by_which_it_is_found() -> None:
    assert [port_name(index, DESCRIBED) for index in range(1, 9)] == [
        "Gi1/0/1", "Gi1/0/2", "Gi1/0/3", None, None, "ether5", "bridge", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "value", [rfc1902.OctetString("abc"), rfc1902.OctetString(""), rfc1902.IpAddress("1.2.3.4"), rfc1902.Integer32(-5),
              rfc1902.ObjectIdentifier("1.3.6")],
)  # fmt: skip
def test_what_is_no_count_is_unknown(value: object) -> None:
    assert whole(value) is None


@pytest.mark.parametrize("value", [rfc1902.Integer32(2**31 - 1), rfc1902.Counter64(2**64 - 1)])
def test_a_name_that_is_a_number_takes_no_memory(value: object) -> None:
    """`bytes(number)` would be gigabytes of zeros."""
    assert text_of(value) == ""


def test_a_name_commands_no_terminal() -> None:
    assert text_of(rfc1902.OctetString(b"\x1b[2J\xe2\x80\xae\xff" * 1000)).startswith("?[2J?")
    assert len(text_of(rfc1902.OctetString(b"\x1b" * 65535))) == 255


class Endless(Session):
    """A switch whose table begins again and again, or whose answers come late."""

    asked = 0

    def _bindings(self, answer: tuple[Any, Any, Any, Any]) -> Any:
        type(self).asked += 1
        return [(f"1.2.{number}", rfc1902.Integer32(1)) for number in (7, 8, 9)]


def endless() -> Endless:
    return Endless(Switch("sw", "sw", address="127.0.0.1", snmp=Snmp()), cast(Any, None), None, None)


async def test_a_table_that_begins_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(*_: object, **__: object) -> tuple[Any, Any, Any, Any]:
        return None, 0, 0, ()

    monkeypatch.setattr(hlapi, "bulk_cmd", answered)
    rows = await endless().walk("1.2", 10_000)
    assert (len(rows), Endless.asked) == (6, 2)


async def test_a_table_that_is_never_read_whole_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    JumpingClock(monkeypatch)
    monkeypatch.setattr(hlapi, "bulk_cmd", late)
    with pytest.raises(NodeError, match=f"a table of it was not read within {snmp.WALK_S:g} s"):
        await endless().walk("1.2", 10)


SWITCH = Switch("core-1", "Core", address="10.0.0.1", snmp=Snmp())


def written(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "credentials.yaml"
    path.write_text(text)
    path.chmod(mode)
    return {"RIGCTL_CREDENTIALS": str(path)}


def test_the_environment_names_the_switch_in_capitals() -> None:
    given = {"RIGCTL_CORE_1_COMMUNITY": "c", "RIGCTL_CORE_1_ENABLE": "e", "RIGCTL_OTHER_USER": "x", "HOME": "/nowhere"}
    assert secrets_of(SWITCH, given) == Secrets(community="c", enable="e")


def test_a_file_has_a_section_per_switch_and_a_variable_wins_over_it(tmp_path: Path) -> None:
    given = written(tmp_path, "core-1: {user: monitor, auth: one, priv: two}\nother: {community: x}\n")
    assert secrets_of(SWITCH, given) == Secrets(user="monitor", auth="one", priv="two")
    assert secrets_of(SWITCH, given | {"RIGCTL_CORE_1_AUTH": "three"}).auth == "three"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_is_open_to_others_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    given = written(tmp_path, "core-1: {community: topsecret}\n", mode)
    with pytest.raises(NodeError) as caught:
        secrets_of(SWITCH, given)
    assert f"is open to others: chmod 600 {tmp_path / 'credentials.yaml'}" in str(caught.value)
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "core-1: topsecret\n",
        "core-1: {comunity: topsecret}\n",
        "core-1: [topsecret]\n",
        "core-1: {community: *topsecret}\n",
        "{topsecret",
        "topsecret",
    ],
)
def test_a_file_that_is_none_is_refused_without_telling_what_is_in_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(NodeError) as caught:
        secrets_of(SWITCH, written(tmp_path, text))
    assert "credentials.yaml" in str(caught.value)
    assert "topsecret" not in str(caught.value)


def test_secrets_are_in_no_text_of_them() -> None:
    text = repr(
        Secrets(community="topsecret", auth="topsecret", priv="topsecret", password="topsecret", enable="topsecret")
    )
    assert "topsecret" not in text
