"""Energy-Efficient Ethernet of a card: off, and on again for the same link modes. tests/machines tries a kernel's."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_clock import preloaded, with_library
from lab import Lab, kill_with_guard, laboratory
from processes import eventually
from talk import Talk

ORDER = "set kind=eee interface=v0 value=off"
OFFERED = (0x00000030, 0x00018000, 0, 0x1)
"""100 and 1000 Mbit/s, 2.5 and 5 Gbit/s, and a mode that only a newer kernel has."""
_STATE = struct.Struct("=6I")
UNKNOWN = (
    "eee of v0: Operation not supported; the driver does not tell whether it uses Energy-Efficient Ethernet, "
    "turn it off at the other end of the cable"
)


@dataclass
class FakeCard:
    """v0 as a card with Energy-Efficient Ethernet (fake_eee.c)."""

    lab: Lab
    file: Path
    library: Path

    def start(self, modes: int = 104) -> Talk:
        return self.lab.start(by=with_library(self.library, FAKE_EEE=self.file, FAKE_MODES=modes))

    @property
    def enabled(self) -> bool:
        return bool(_STATE.unpack(self.file.read_bytes())[0])

    @property
    def offered(self) -> tuple[int, ...]:
        return _STATE.unpack(self.file.read_bytes())[1:5]

    @property
    def sets(self) -> int:
        return int(_STATE.unpack(self.file.read_bytes())[5])

    def be(self, *, enabled: bool) -> None:
        self.file.write_bytes(_STATE.pack(enabled, *(OFFERED if enabled else (0, 0, 0, 0)), 0))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded(Path(__file__).with_name("fake_eee.c"), tmp_path_factory.mktemp("eee"))


@pytest.fixture
def card(sanitized: Path, library: Path, tmp_path: Path) -> Iterator[FakeCard]:
    with laboratory(sanitized, tmp_path) as lab:
        made = FakeCard(lab, tmp_path / "card", library)
        made.be(enabled=True)
        yield made


@pytest.mark.parametrize("how", ["restore", "agent killed", "guard killed"])
def test_it_is_switched_off_and_comes_back_for_the_modes_for_which_it_was_offered(card: FakeCard, how: str) -> None:
    agent = card.start()
    answer = agent.ask(ORDER)
    assert (answer["old"], answer["value"]) == ("on:1,0,18000,30", "off")
    assert not card.enabled
    if how == "restore":
        assert agent.ask("restore")["restored"] == 1
    elif how == "agent killed":
        agent.process.kill()
        eventually(lambda: not card.lab.journal.exists())
    else:
        kill_with_guard(card.lab, agent)
        assert card.start().hello["unrestored"] is None
    assert (card.enabled, card.offered, card.sets) == (True, OFFERED, 2)
    assert not card.lab.journal.exists()


def test_where_it_is_off_already_nothing_is_written(card: FakeCard) -> None:
    card.be(enabled=False)
    agent = card.start()
    answer = agent.ask(ORDER)
    assert (answer["old"], answer["value"]) == ("off", "off")
    assert agent.ask("restore")["restored"] == 1
    assert card.sets == 0


def test_a_dry_order_changes_nothing(card: FakeCard) -> None:
    answer = card.start().ask(f"{ORDER} dry=1")
    assert (answer["ok"], answer["old"]) == (True, "on:1,0,18000,30")
    assert card.sets == 0


def test_only_off_can_be_asked_for(card: FakeCard) -> None:
    for value in ("on", "on:30", "yes"):
        answer = card.start().ask(ORDER.replace("off", value))
        assert (answer["error"], answer["message"]) == ("EPROTO", "value: expected off")


@pytest.mark.parametrize("dry", ["", " dry=1"])
def test_where_the_driver_does_not_tell_it_is_refused_with_the_other_end_as_the_way_out(lab: Lab, dry: str) -> None:
    answer = lab.start().ask(ORDER + dry)  # of the kernel: a veth has none
    said = answer["message"].replace("Not supported;", "Operation not supported;")  # of musl, and of glibc
    assert (answer["error"], said) == ("EOPNOTSUPP", UNKNOWN)
    assert not lab.journal.exists()


@pytest.mark.parametrize(("value", "said"), [("on:1,0,18000,30", "not supported"), ("on:3x", "Invalid argument")])
def test_the_kernel_understands_the_message_that_brings_it_back(lab: Lab, value: str, said: str) -> None:
    """To a message that it does not understand, the kernel says that an argument is invalid."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    lab.journal.write_text(f"rigctl-settings 1 {boot_id}set eee - v0 {value}\n")
    lab.journal.chmod(0o600)
    unrestored = lab.start().hello["unrestored"]
    assert unrestored.lower().startswith("eee of v0: "), unrestored
    assert said.lower() in unrestored.lower()
    lab.journal.unlink()
