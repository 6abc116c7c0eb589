"""Counters by a switch's command line: netmiko and paramiko against SSH servers that speak as IOS and OS9 do."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from processes import DEADLINE_S

from rigctl.base.errors import NodeError
from rigctl.rig.inventory import Cli, Secrets
from rigctl.rig.inventory import Switch as Asked
from rigctl.switches import cli, reader_of

USER, PASSWORD, ENABLE = "monitor", "pass-word", "en-able"
PORT = "GigabitEthernet2/1"
FIXTURES = Path(__file__).parents[1] / "unit" / "fixtures" / "switches"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a switch all the time it takes, in tests that are not about its silence."""
    for name in ("_CONNECT_S", "_CLI_ANSWER_S", "_LOGIN_S"):
        monkeypatch.setattr(cli, name, DEADLINE_S)


@dataclass(slots=True)
class Switch:
    """One switch. `kind` is its dialect; `port` where it listens; `host_key` the public line for known_hosts."""

    kind: str
    interface: str
    prompt: str = "core"
    counted: int = 1000  # octets in, more with every answer
    cleared: str = "never"
    cut_after: int | None = None  # so many answers, then the connection is dropped in the middle of one
    silent: bool = False  # takes connections and logins, and says nothing
    said: list[str] = field(default_factory=list)  # what was typed
    port: int = 0
    host_key: str = ""

    def show(self) -> str:
        self.counted += 111
        lines = (FIXTURES / f"{self.kind}.txt").read_text()
        cleared = "00:17:26" if self.kind == "cisco_ios" else "2d13h6m"
        octets = "27359644" if self.kind == "cisco_ios" else "117562001234567"
        return lines.replace(cleared, self.cleared).replace(octets, str(self.counted), 1)

    @property
    def refusal(self) -> str:
        mark = "                    ^\n% Invalid input detected at '^' marker.\n"
        return mark if self.kind == "cisco_ios" else '% Error: Invalid input at "^" marker.\n'


class _Server(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)


async def _serve(switch: Switch, process: "asyncssh.SSHServerProcess[str]") -> None:
    """Serve one session. asyncssh edits and echoes the lines; whoever does not turn off paging is stopped by it."""
    if switch.silent:
        await process.stdin.read()
        return
    mode, paged, answers = ">", True, 0
    channel: Any = process.channel  # asyncssh's line editor, which has no type of its own there
    process.stdout.write(f"\nThis is {switch.prompt}.\n\n")
    while not process.stdin.at_eof():
        process.stdout.write(f"{switch.prompt}{mode}")
        typed = (await process.stdin.readline()).strip()
        words = typed.split(None, 2)
        switch.said.append(typed)
        if typed in ("exit", "quit", "logout"):
            return
        if typed == "terminal length 0":
            paged = False
        elif typed == "enable":
            process.stdout.write("Password: ")
            channel.set_echo(False)
            mode = "#" if (await process.stdin.readline()).strip() == ENABLE else ">"
            channel.set_echo(True)
            process.stdout.write("\n" if mode == "#" else "\n% Access denied\n")
        elif words[:2] == ["show", "interfaces"]:
            answers += 1
            if switch.cut_after is not None and answers > switch.cut_after:
                process.stdout.write(switch.show()[:200])
                channel.get_connection().abort()
                return
            known = words[2:] == [switch.interface]
            process.stdout.write(" --More-- " if paged else switch.show() if known else switch.refusal)
        elif typed and not typed.startswith("terminal width"):
            process.stdout.write(switch.refusal)


@asynccontextmanager
async def listening(switch: Switch) -> AsyncIterator[Switch]:
    """`switch` on a port of 127.0.0.1."""
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def serve(process: "asyncssh.SSHServerProcess[str]") -> None:
        with suppress(ConnectionError, asyncssh.Error, asyncio.IncompleteReadError):
            await _serve(switch, process)
        process.exit(0)

    server = await asyncssh.create_server(_Server, "127.0.0.1", 0, server_host_keys=[key], process_factory=serve)
    switch.port = server.sockets[0].getsockname()[1]
    switch.host_key = f"[127.0.0.1]:{switch.port} {key.export_public_key('openssh').decode().strip()}\n"
    yield switch
    server.close()
    await server.wait_closed()


@pytest.fixture
async def ios() -> AsyncIterator[Switch]:
    async with listening(Switch("cisco_ios", PORT)) as switch:
        yield switch


@pytest.fixture(params=[("cisco_ios", PORT), ("dell_os9", "GigabitEthernet 1/1")], ids=["ios", "os9"])
async def switch(request: pytest.FixtureRequest) -> AsyncIterator[Switch]:
    async with listening(Switch(*request.param)) as made:
        yield made


def asked(switch: Switch, folder: Path, secrets: Secrets | None = None, known: bool = True) -> Asked:
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(switch.host_key if known else "")
    how = Cli(switch.kind, switch.port, known_hosts)  # type: ignore[arg-type]
    return Asked("core", "Core", address="127.0.0.1", cli=how, secrets=secrets or Secrets(user=USER, password=PASSWORD))


async def refused(wanted: Asked, ports: list[str]) -> str:
    with pytest.raises(NodeError) as caught:
        async with reader_of(wanted, ports):
            pass
    said = str(caught.value)
    assert "\n" not in said
    assert PASSWORD not in said
    assert ENABLE not in said
    return said


async def test_counters_are_read_again_and_again(switch: Switch, tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    async with reader_of(asked(switch, tmp_path), [switch.interface]) as reader:
        assert reader.source == "cli"
        readings = [(await reader.read())[switch.interface] for _ in range(3)]
    assert [one.in_octets for one in readings] == [1222, 1333, 1444]  # the first answer was the way in
    assert readings[0].out_discards == 553
    assert readings[0].discontinuity == readings[2].discontinuity
    times = [before_ns, *(one.t_ns for one in readings), time.monotonic_ns()]
    assert times == sorted(times)
    assert "terminal length 0" in switch.said
    assert "enable" not in switch.said


async def test_counters_that_were_cleared_meanwhile_are_others(switch: Switch, tmp_path: Path) -> None:
    switch.cleared = "5d03h"
    async with reader_of(asked(switch, tmp_path), [switch.interface]) as reader:
        first = (await reader.read())[switch.interface]
        switch.cleared = "0d00h"  # within this hour: true of both answers, however long they take
        second = (await reader.read())[switch.interface]
        third = (await reader.read())[switch.interface]
    assert first.discontinuity != second.discontinuity == third.discontinuity


async def test_enable_is_asked_for_where_its_password_is_given(switch: Switch, tmp_path: Path) -> None:
    secrets = Secrets(user=USER, password=PASSWORD, enable=ENABLE)
    async with reader_of(asked(switch, tmp_path, secrets), [switch.interface]) as reader:
        assert (await reader.read())[switch.interface].in_octets == 1222
    assert "enable" in switch.said
    said = await refused(asked(switch, tmp_path, replace(secrets, enable="wrong")), [switch.interface])
    place = f"127.0.0.1, SSH port {switch.port}"
    assert said == f"core: {place} refuses the command `enable` to user monitor: check the enable password"


async def test_a_port_that_the_switch_does_not_have_is_named(switch: Switch, tmp_path: Path) -> None:
    said = await refused(asked(switch, tmp_path), [switch.interface, "GigabitEthernet9/9"])
    assert said.startswith("core: port GigabitEthernet9/9: the switch prints ")
    assert said.endswith("Give its name as in `show interfaces`")


@pytest.mark.parametrize(
    ("secrets", "port", "words"),
    [
        (Secrets(user=USER, password=PASSWORD), "Gi1/1\nreload", "expected an interface name"),
        (Secrets(user=USER, password="other"), PORT, "SSH port NUMBER refuses user monitor: check its password"),
        (Secrets(password=PASSWORD), PORT, "set RIGCTL_CORE_USER and RIGCTL_CORE_PASSWORD"),
    ],
    ids=["a port's name that is none", "a wrong password", "no user"],
)
async def test_a_refusal_says_why_and_none_is_typed(
    secrets: Secrets, port: str, words: str, ios: Switch, tmp_path: Path
) -> None:
    said = await refused(asked(ios, tmp_path, secrets), [port])
    assert ios.said == []
    assert words.replace("NUMBER", str(ios.port)) in said


@pytest.mark.parametrize("known", ["none", "another"])
async def test_an_unknown_host_key_gets_no_password(known: str, ios: Switch, tmp_path: Path) -> None:
    wanted = asked(ios, tmp_path, known=False)
    if known == "another":
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key("openssh").decode()
        (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{ios.port} {other}")
    said = await refused(wanted, [ios.interface])
    assert ios.said == []
    assert "host key" in said
    assert ("is not known" if known == "none" else "a host key that differs from the known one") in said


async def test_a_connection_that_is_cut_is_said_and_the_next_one_works(ios: Switch, tmp_path: Path) -> None:
    ios.cut_after = 2
    wanted = asked(ios, tmp_path)
    async with reader_of(wanted, [ios.interface]) as reader:
        await reader.read()
        with pytest.raises(NodeError, match="core: the connection was cut: "):
            await reader.read()
    ios.cut_after = None
    async with reader_of(wanted, [ios.interface]) as reader:
        assert await reader.read()


@pytest.mark.parametrize(("login_s", "prompt_s"), [(0.5, 2.0), (DEADLINE_S, 0.5)], ids=["login", "prompt"])
async def test_a_switch_that_is_silent_is_given_up(
    login_s: float, prompt_s: float, ios: Switch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, slow = cli._connect, {"read_timeout_override": prompt_s}
    monkeypatch.setattr(cli, "_connect", lambda options, **more: connect(options | slow, **more))
    monkeypatch.setattr(cli, "_LOGIN_S", login_s)
    ios.silent = True
    said = await refused(asked(ios, tmp_path), [ios.interface])
    assert said == f"core: no prompt from 127.0.0.1, SSH port {ios.port}. Is `kind: cisco_ios` right?"


async def test_nobody_there_is_said(tmp_path: Path) -> None:
    async with listening(Switch("cisco_ios", PORT)) as gone:
        wanted = asked(gone, tmp_path)
    said = await refused(wanted, [PORT])
    assert said == f"core: 127.0.0.1, SSH port {gone.port} can't be reached: check the address, and that SSH is on"
