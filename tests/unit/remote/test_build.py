"""How agents are built and put on nodes, which are played by recorded answers, and the message if one cannot be."""

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from rigctl.base.errors import InputError, NodeError
from rigctl.records import Link
from rigctl.remote import build as room
from rigctl.remote.build import TARGETS
from rigctl.remote.deploy import deploy
from rigctl.remote.host import CommandOutput, Host
from rigctl.rig.inventory import Node


def test_an_unknown_target_and_a_missing_compiler_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r'unknown target "sparc".*riscv64'):
        room.build_binaries(["x86_64", "sparc"])
    monkeypatch.setattr(room, "has_cross_compiler", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="ziglang") as told:
        room._compiler(TARGETS[room.host_machine()])
    assert "cc" in str(told.value)


def test_the_fingerprint_changes_with_sources_and_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int x;")
    monkeypatch.setattr(room, "_compiler", lambda target: ["cc"])
    first = room._fingerprint(tmp_path, TARGETS["x86_64"])
    assert room._fingerprint(tmp_path, TARGETS["x86_64"]) == first
    (tmp_path / "main.c").write_text("int y;")
    second = room._fingerprint(tmp_path, TARGETS["x86_64"])
    monkeypatch.setattr(room, "_compiler", lambda target: ["other"])
    assert len({first, second, room._fingerprint(tmp_path, TARGETS["x86_64"])}) == 3


def test_a_wheel_is_built_with_the_compiler_that_the_agents_were_tested_with() -> None:
    root = Path(__file__).parents[3]
    (tested,) = re.findall(r"^ziglang==(\S+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    project = (root / "pyproject.toml").read_text()
    assert re.findall(r'ziglang==([^"]+)"', project) == [tested, tested]


class Recorded(Host):
    """A host that answers with what was recorded, in order, and keeps what it was asked."""

    def __init__(self, *answers: CommandOutput) -> None:
        self.node = Node("pi1", "10.0.0.1", Link(None, None))
        self.answers, self.inputs = list(answers), list[bytes | None]()

    async def run(self, command: str, *, input: bytes | None = None, deadline_s: float = 10) -> CommandOutput:
        self.inputs.append(input)
        return self.answers.pop(0)


def said(text: str, errors: str = "", exit_code: int | None = 0) -> CommandOutput:
    return CommandOutput(exit_code, text.encode(), errors.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for machine in ("x86_64", "aarch64", "armv7", "armv6"):
        (tmp_path / f"rigctl-agent-{machine}").write_bytes(machine.encode())
    return tmp_path


def sha256(machine: str) -> str:
    return hashlib.sha256(machine.encode()).hexdigest()


@pytest.mark.parametrize(
    ("kernel", "machine"),
    [("aarch64", "aarch64"), ("arm64", "aarch64"), ("armv7l", "armv7"), ("armv8l", "armv7"), ("armv6l", "armv6")],
)
async def test_the_agent_that_is_there_already_is_taken(folder: Path, kernel: str, machine: str) -> None:
    host = Recorded(said(f"Linux {kernel}\nthere {sha256(machine)} /home/pi/.cache/rigctl/agent-x\n"))
    deployed = await deploy(host, folder)
    assert (deployed.sha256, deployed.path) == (sha256(machine), "/home/pi/.cache/rigctl/agent-x")
    assert host.inputs == [b""]  # one round trip


@pytest.mark.parametrize("held", ["absent -", f"there {'0' * 64}"])
async def test_what_is_absent_or_wrong_is_pushed(folder: Path, held: str) -> None:
    host = Recorded(said(f"Linux aarch64\n{held} /c/agent-x\n"), said(f"done {sha256('aarch64')}\n"))
    await deploy(host, folder)
    assert host.inputs == [b"", b"aarch64"]


async def test_where_the_node_can_not_tell_its_bytes_are_looked_at_here(folder: Path) -> None:
    there = said("Linux x86_64\nthere unknown /c/agent-x\n")
    right, wrong = Recorded(there, said("x86_64")), Recorded(there, said("y86_64"), DONE, said("x86_64"))
    for host, inputs in ((right, [b"", b""]), (wrong, [b"", b"", b"x86_64", b""])):
        await deploy(host, folder)
        assert host.inputs == inputs


ABSENT, DONE = said("Linux x86_64\nabsent - /c/agent-x\n"), said("done unknown\n")
FULL = said("", "cat: write error: No space left on device\n", 9)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([said("Linux i686\n")], "there is no agent for i686, only for aarch64"),
        ([said("Linux riscv64\n")], "the agent for riscv64 is not built: rigctl agent build --target riscv64"),
        ([said("NetBSD amd64\n")], "it runs NetBSD, but there are agents for Linux, FreeBSD and Windows only"),
        ([said("FreeBSD i386\n")], "there is no agent for i386, only for amd64, arm64"),
        ([said("FreeBSD amd64\n")], "the agent for freebsd-x86_64 is not built"),
        ([said("", "sh: not found\n", 127)], "did not tell the type of the machine: sh: not found (exit code 127)"),
        (
            [said("Linux x86_64\n", "id: no\n", 2)],
            "could not check whether the agent is installed: id: no (exit code 2)",
        ),
        ([said("Linux x86_64\nnowhere - -\n")], "no folder to put the agent in"),
        ([ABSENT, FULL], "could not put the agent into /c: cat: write error: No space left"),
        ([ABSENT, DONE, said("x86_6")], "the agent was not copied completely to /c"),
    ],
)
async def test_a_node_that_cannot_have_an_agent_says_why(
    folder: Path, replies: list[CommandOutput], expected: str
) -> None:
    with pytest.raises(NodeError, match=f"^pi1: .*{re.escape(expected)}"):
        await deploy(Recorded(*replies), folder)
