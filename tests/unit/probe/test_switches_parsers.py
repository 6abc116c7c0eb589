"""What switches print of an interface becomes counters, or is refused, never a 0; and names of ports."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rigctl.probe.switches.cli import Clearing, Shown, UnreadableError, cisco_ios, dell_os9
from rigctl.probe.switches.reading import resolved

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
    assert shown.cleared_s_ago == (26 * 3600, 27 * 3600)


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
    ],
)
def test_when_counters_were_cleared_is_bounded_by_what_is_printed(ago: str, seconds: tuple[int, int] | None) -> None:
    shown = cisco_ios(printed("cisco_ios").replace("00:17:26", ago))
    assert shown.cleared_s_ago == seconds


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
def test_whatever_a_switch_prints_it_is_refused_at_once(parse: Parse, name: str, filling: str) -> None:
    """Milliseconds of processor time; a pattern that backtracks takes minutes at this size."""
    began = time.process_time()
    for text in (filling * (60_000 // len(filling)), printed(name).splitlines()[0] + "\n" + filling * 3000):
        with pytest.raises(UnreadableError):
            parse(text)
    with pytest.raises(UnreadableError, match="longer than 65536 characters"):
        parse(filling * 70_000)
    assert time.process_time() - began < 2


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
    assert len(missing[name]) in (1, 2, 3)


def test_a_name_that_fits_two_is_missing() -> None:
    two = {1: ("Gi1/1", "", ""), 2: ("Gig1/1", "", "")}
    assert resolved(["G1/1"], two)[0] == {}
    assert resolved(["Gi1/1"], two)[0] == {"Gi1/1": 1}  # the same name wins
