"""`sudo: true`: what sudo and sudo-rs say, a sudo that is late, and what `rig init` makes of both."""

import asyncio
from typing import Any, cast

import pytest

from rigctl.base.errors import NodeError
from rigctl.discovery.discover import _answers
from rigctl.hosts.candidate import BY_SUDO, read_candidate
from rigctl.hosts.fact import given_answer
from rigctl.records import Link
from rigctl.remote.deploy import deploy
from rigctl.remote.host import SUDO_S, CommandOutput, Host, LateError, sudo_refusal
from rigctl.rig.inventory import Node

NODE = Node("pi1", "10.0.0.1", Link(None, None), user="pi", sudo=True)
RULE = "echo 'pi ALL=(root) NOPASSWD: ALL' >>/etc/sudoers.d/rigctl"
NO_TTY = "echo 'Defaults:pi !requiretty' >>/etc/sudoers.d/rigctl"
UNRESOLVED = "sudo: unable to resolve host pi1: Temporary failure in name resolution\n"
SAYINGS = [
    ("sudo: a password is required\n", "password", "sudo asks for a password", RULE),
    ("sudo-rs: interactive authentication is required\n", "password", "sudo asks for a password", RULE),
    ("sudo: interactive authentication is required\n", "password", "sudo asks for a password", RULE),
    ("sudo-rs: I'm sorry pi. I'm afraid I can't do that\n", "refused", "does not let pi run a shell", RULE),
    ("sudo: I'm sorry pi. I'm afraid I can't do that\n", "refused", "does not let pi run a shell", RULE),
    ("Sorry, user pi is not allowed to execute '/bin/sh' as root on pi1.\n", "refused", "does not let pi", RULE),
    ("pi is not in the sudoers file.\n", "refused", "sudo does not know pi", RULE),
    ("sudo: sorry, you must have a tty to run sudo\n", "tty", "sudo wants a terminal", NO_TTY),
    ('sudo: The "no new privileges" flag is set, which prevents sudo\n', "failed", "flag is set", "sudo -n sh"),
    ("sudo: /etc/sudo.conf is owned by uid 1000, should be 0\n", "failed", "owned by uid 1000", "log in as root"),
]


@pytest.mark.parametrize(("said", "code", "meaning", "remedy"), SAYINGS)
@pytest.mark.parametrize("before", ["", UNRESOLVED, "ERROR: ld.so: object 'x' cannot be preloaded: ignored.\n"])
def test_each_refusal_has_the_line_that_helps(said: str, code: str, meaning: str, remedy: str, before: str) -> None:
    why = sudo_refusal(NODE, CommandOutput(1, b"", f"{before}{said}".encode())) or ""
    assert meaning in why
    assert remedy in why
    assert why.endswith("or leave `sudo: true` out of node pi1 in the rig file")
    assert read_candidate(given_answer("sudo", before + said)).sudo == code


def test_what_others_say_is_no_refusal_by_sudo() -> None:
    for said in ("", "sh: 1: uname: not found\n", "ERROR: ld.so: object 'sudo.so' cannot be preloaded: ignored.\n"):
        assert sudo_refusal(NODE, CommandOutput(1, b"", said.encode())) is None


class LateHost:
    """Its sudo has not answered by any deadline; all else has."""

    def __init__(self, said: str, *, sudo: bool = True) -> None:
        self.node = NODE if sudo else Node("pi1", "10.0.0.1", Link(None, None))
        self._said = said
        self.deadlines_s: list[float] = []

    async def run(self, command: str, *, deadline_s: float, **_: Any) -> CommandOutput:
        self.deadlines_s.append(deadline_s)
        if "sudo -n" in command or not self.node.sudo:
            raise LateError(self.node.name, f"not finished within {deadline_s:g} s: exec sh", self._said)
        return CommandOutput(0, given_answer("kernel", "Linux 6.12 x86_64").encode(), b"")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (UNRESOLVED, r"; it said: sudo: unable to resolve host pi1.*/etc/hosts$"),
        (f"ERROR: ld.so: x\n{UNRESOLVED}\n", r"; it said: sudo: unable to resolve host pi1.*/etc/hosts$"),
        ("", r"\. Find out there what it waits for: time sudo -n id$"),
        ("sudo: waiting for the LDAP server\n", r"; it said: sudo: waiting for the LDAP server\. Find out there"),
    ],
)
async def test_a_late_sudo_is_named_with_its_words(said: str, told: str) -> None:
    host = LateHost(said)
    with pytest.raises(NodeError, match=f"^pi1: sudo takes longer than 30 s{told}"):
        await deploy(cast(Host, host))
    assert host.deadlines_s == [10 + SUDO_S]


async def test_without_sudo_a_late_command_is_told_as_it_is() -> None:
    host = LateHost("a word\n", sudo=False)
    with pytest.raises(NodeError, match=r"^pi1: not finished within 10 s: exec sh; it said: a word$"):
        await deploy(cast(Host, host))
    assert host.deadlines_s == [10]


async def test_a_host_with_a_late_sudo_can_be_a_node() -> None:
    async with asyncio.timeout(20) as limit:
        found = read_candidate(await _answers(cast(Host, LateHost(UNRESOLVED)), limit))
    assert (found.system, found.machine, found.sudo, found.lldp) == ("Linux", "x86_64", "late", "refused")
    assert set(BY_SUDO) == {"sudo", "lldp"}
