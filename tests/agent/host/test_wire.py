"""Counts of a card on the wire, by the names of its driver (docs/reference/counters-of-the-wire.md)."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from fake_clock import preloaded, with_library
from lab import Lab, laboratory
from talk import AGENTS, Report, ran

RECORDED = {path.stem: path for path in (AGENTS.parent / "tests" / "unit" / "fixtures" / "wire").glob("*.txt")}
COUNTERS = ("rx_pause", "tx_pause", "fcs_errors", "alignment_errors", "late_collisions", "symbol_errors")
UNKNOWN = dict.fromkeys((*COUNTERS, "fec_corrected", "fec_uncorrectable"))


def documented() -> dict[str, dict[str, str | None]]:
    """Return the private name of each counter, by driver, from the table of the reference page."""
    page = (AGENTS.parent / "docs" / "reference" / "counters-of-the-wire.md").read_text("utf-8")
    found = {}
    for row in re.findall(r"^\| `(\w+)` \|(.*)\| `[\w/]+\.[ch]`: [0-9, ]+\|$", page, re.MULTILINE):
        names = [cell.strip(" `") for cell in row[1].split("|")]
        found[row[0]] = dict(zip(COUNTERS, (None if name == "–" else name for name in names), strict=True))
    return found


DRIVERS = documented()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded(Path(__file__).with_name("fake_counters.c"), tmp_path_factory.mktemp("counters"))


def names_in(driver: str) -> list[str]:
    """Return the names of counters in a recorded output of `ethtool -S`, in its order."""
    return [
        line.strip().rpartition(": ")[0] for line in RECORDED[driver].read_text("utf-8").splitlines() if ": " in line
    ]


def counted(sanitized: Path, folder: Path, library: Path, driver: str, names: list[str], more: int = 0) -> Report:
    """Return the receiver's report of traffic while v0 is a card with these counters."""
    (folder / "names").write_text("\n".join(names))
    by = with_library(library, FAKE_DRIVER=driver, FAKE_NAMES=folder / "names", FAKE_MORE=more)
    with laboratory(sanitized, folder) as lab:
        return ran(lambda: lab.start(by=by), duration_ms=50, extra="interface=v0")[0]


@pytest.fixture(scope="module")
def replayer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that reads a card from recorded messages with the agent's own code, under sanitizers."""
    program = tmp_path_factory.mktemp("replay") / "replay_wire"
    files = [
        Path(__file__).with_name("replay_wire.c"),
        *(AGENTS / f"{name}-linux.c" for name in ("wire", "ethtool", "netlink")),
    ]
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{AGENTS}",
    ]
    flags += ["-Dsend=send_replayed", "-Drecv=recv_replayed"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", program, *files], check=True)
    return program


KERNEL = RECORDED["netdevsim-6.12"].read_text("utf-8").split("\n== ")
MESSAGES = r"^(\w+)\n> (\w+)\n< (\w+)$"
FAMILY = re.findall(MESSAGES, KERNEL[1], re.MULTILINE)[0]


def replayed(replayer: Path, card: str, messages: list[tuple[str, str]]) -> str:
    told = "".join(f"{request} {answer}\n" for request, answer in messages)
    done = subprocess.run([replayer, card], input=told, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("state", KERNEL[1:], ids=lambda state: state.partition("\n")[0])
def test_a_kernels_recorded_answers_are_read_as_they_were(replayer: Path, state: str) -> None:
    (card,) = re.findall(r"^\$ recorder (\w+)$", state, re.MULTILINE)
    (counters,) = re.findall(r"^wire_read:.*$", state, re.MULTILINE)
    asked = [
        (request, answer) for name, request, answer in re.findall(MESSAGES, state, re.MULTILINE) if "EEE" not in name
    ]
    if card == "eth2":  # its private counters are not in the messages
        counters = re.sub(r"=\d+", "=-1", counters)
    family = [] if asked[0] == FAMILY[1:] else [FAMILY[1:]]
    assert replayed(replayer, card, [*family, *asked]) == counters


def test_an_answer_that_is_cut_anywhere_is_read_without_harm(replayer: Path) -> None:
    (state,) = (state for state in KERNEL if state.startswith("changed netdevsim"))
    asked = [
        (request, answer) for name, request, answer in re.findall(MESSAGES, state, re.MULTILINE) if "EEE" not in name
    ]
    for at, (request, answer) in enumerate(asked):
        for kept in range(0, len(answer), 8):
            # The length in the header is that of what is left, else the answer would only be passed over.
            length = (kept // 2).to_bytes(4, "little").hex()
            cut = (length + answer[8:])[:kept] if kept >= 40 else "00" * 20
            replayed(replayer, "sim0", [FAMILY[1:], *asked[:at], (request, cut), *asked[at + 1 :]])


def wire(report: Report) -> dict[str, int | None]:
    return {name: report.last[name] for name in UNKNOWN}


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_private_counters_are_found_by_the_names_that_somebodys_card_printed(
    sanitized: Path, tmp_path: Path, library: Path, driver: str
) -> None:
    names = names_in(driver)[1:]  # without the line on its source
    last = {name: number for number, name in enumerate(names, 1)}
    found = wire(counted(sanitized, tmp_path, library, driver, names))
    # The recording of igc has only lines that are not 0.
    assert found == UNKNOWN | {counter: last.get(name or "") for counter, name in DRIVERS[driver].items()}
    assert driver == "igc" or {name for name in DRIVERS[driver].values() if name} <= last.keys()


def test_names_of_another_driver_are_not_believed(sanitized: Path, tmp_path: Path, library: Path) -> None:
    assert wire(counted(sanitized, tmp_path, library, "atlantic", names_in("igb"))) == UNKNOWN


def test_counters_that_appear_while_they_are_read_are_not_mistaken(
    sanitized: Path, tmp_path: Path, library: Path
) -> None:
    assert wire(counted(sanitized, tmp_path, library, "igb", names_in("igb"), more=7)) == UNKNOWN


def test_an_interface_without_a_card_counts_nothing_on_the_wire(lab: Lab) -> None:
    for interface in ("lo", "v0"):
        assert wire(ran(lab.start, duration_ms=50, extra=f"interface={interface}")[0]) == UNKNOWN


def test_the_only_card_below_an_interface_is_read_and_of_two_none(
    sanitized: Path, tmp_path: Path, library: Path
) -> None:
    (tmp_path / "names").write_text("\n".join(names_in("igb")))
    by = with_library(library, FAKE_DRIVER="igb", FAKE_NAMES=tmp_path / "names")
    found = []
    with laboratory(sanitized, tmp_path) as lab:
        lab.run("ip", "link", "add", "b0", "type", "bridge")
        for member in ("v0", "v1"):
            lab.run("ip", "link", "set", member, "master", "b0")
            report, _ = ran(lambda: lab.start(by=by), duration_ms=50, extra="interface=b0")
            found.append(report.last["rx_pause"])
    assert found == [names_in("igb").index("rx_flow_control_xoff") + 1, None]
