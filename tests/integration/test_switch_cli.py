"""Counters by a switch's command line: netmiko and paramiko against SSH servers that speak as IOS and OS9 do."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from processes import DEADLINE_S

from rigctl.base.errors import NodeError
from rigctl.probe.switches import cli, reader_of
from rigctl.rig.inventory import Cli, Secrets
from rigctl.rig.inventory import Switch as Asked

USER, PASSWORD, ENABLE = "monitor", "pass-word", "en-able"
FIXTURES = Path(__file__).parents[1] / "unit" / "fixtures" / "switches"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a switch all the time it takes, in tests that are not about its silence."""
    for name in ("CONNECT_S", "ANSWER_S", "_LOGIN_S"):
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


class _Terminal:
    """One session's line discipline: it echoes what is typed, pages what is long, and knows its mode."""

    def __init__(self, switch: Switch, process: "asyncssh.SSHServerProcess[str]") -> None:
        self.switch, self.process = switch, process
        self.privileged, self.paged, self.answers = False, True, 0

    async def serve(self) -> None:
        if self.switch.silent:
            await self.process.stdin.read()
            return
        self._write(f"\r\nThis is {self.switch.prompt}.\r\n\r\n")
        while True:
            self._write(f"{self.switch.prompt}{'#' if self.privileged else '>'}")
            typed = await self._line(echo=True)
            self.switch.said.append(typed)
            if typed in ("exit", "quit", "logout"):
                return
            await self._obey(typed)

    async def _obey(self, typed: str) -> None:
        words = typed.split(None, 2)
        if typed == "terminal length 0":
            self.paged = False
        elif typed == "enable":
            self._write("Password: ")
            self.privileged = await self._line(echo=False) == ENABLE
            if not self.privileged:
                self._write("% Access denied\r\n")
        elif words[:2] == ["show", "interfaces"]:
            self.answers += 1
            known = len(words) == 3 and words[2] == self.switch.interface
            if self.switch.cut_after is not None and self.answers > self.switch.cut_after:
                self._write(self.switch.show()[:200])
                self.process.channel.get_connection().abort()
                raise ConnectionError("cut in the middle of an answer")
            await self._print(self.switch.show() if known else self.switch.refusal)
        elif typed and not typed.startswith("terminal width"):
            await self._print(self.switch.refusal)

    async def _print(self, text: str) -> None:
        for at, line in enumerate(text.splitlines()):
            if self.paged and at and at % 24 == 0:
                self._write(" --More-- ")
                if await self.process.stdin.read(1) != " ":
                    return
                self._write("\r          \r")
            self._write(f"{line}\r\n")

    async def _line(self, *, echo: bool) -> str:
        typed = ""
        while True:
            key = await self.process.stdin.read(1)
            if not key:
                raise ConnectionError("the other side is gone")
            if key in "\r\n":
                self._write("\r\n")
                return typed.strip()
            typed += key
            if echo:
                self._write(key)

    def _write(self, text: str) -> None:
        self.process.stdout.write(text)


@asynccontextmanager
async def listening(switch: Switch, host_key: asyncssh.SSHKey | None = None) -> AsyncIterator[Switch]:
    """`switch` on a port of 127.0.0.1."""
    key = host_key or asyncssh.generate_private_key("ssh-ed25519")

    async def serve(process: "asyncssh.SSHServerProcess[str]") -> None:
        try:
            await _Terminal(switch, process).serve()
        except (ConnectionError, asyncssh.Error, asyncio.IncompleteReadError):
            pass
        finally:
            process.exit(0)

    how: dict[str, Any] = {"process_factory": serve, "line_editor": False, "encoding": "utf-8"}
    server = await asyncssh.create_server(_Server, "127.0.0.1", 0, server_host_keys=[key], **how)
    switch.port = server.sockets[0].getsockname()[1]
    switch.host_key = f"[127.0.0.1]:{switch.port} {key.export_public_key('openssh').decode().strip()}\n"
    try:
        yield switch
    finally:
        server.close()
        await server.wait_closed()


IOS = ("cisco_ios", "GigabitEthernet2/1")
OS9 = ("dell_os9", "GigabitEthernet 1/1")
BOTH = pytest.mark.parametrize("dialect", [IOS, OS9], ids=["ios", "os9"])


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


@BOTH
async def test_counters_are_read_again_and_again(dialect: tuple[str, str], tmp_path: Path) -> None:
    async with listening(Switch(*dialect)) as switch:
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


@BOTH
async def test_counters_that_were_cleared_meanwhile_are_others(dialect: tuple[str, str], tmp_path: Path) -> None:
    async with listening(Switch(*dialect, cleared="5d03h")) as switch:
        async with reader_of(asked(switch, tmp_path), [switch.interface]) as reader:
            first = (await reader.read())[switch.interface]
            switch.cleared = "0d00h"  # within this hour: true of both answers, however long they take
            second = (await reader.read())[switch.interface]
            third = (await reader.read())[switch.interface]
    assert first.discontinuity != second.discontinuity == third.discontinuity


@BOTH
async def test_enable_is_asked_for_where_its_password_is_given(dialect: tuple[str, str], tmp_path: Path) -> None:
    async with listening(Switch(*dialect)) as switch:
        secrets = Secrets(user=USER, password=PASSWORD, enable=ENABLE)
        async with reader_of(asked(switch, tmp_path, secrets), [switch.interface]) as reader:
            assert (await reader.read())[switch.interface].in_octets == 1222
        assert "enable" in switch.said
        said = await refused(asked(switch, tmp_path, replace(secrets, enable="wrong")), [switch.interface])
    assert said == f"core: 127.0.0.1, SSH port {switch.port} did not let user monitor enable: check its enable password"


@BOTH
async def test_a_port_that_the_switch_does_not_have_is_named(dialect: tuple[str, str], tmp_path: Path) -> None:
    async with listening(Switch(*dialect)) as switch:
        said = await refused(asked(switch, tmp_path), [switch.interface, "GigabitEthernet9/9"])
    assert said.startswith("core: port GigabitEthernet9/9: it prints ")
    assert said.endswith("Names are as in `show interfaces`")


@pytest.mark.parametrize(
    ("secrets", "port", "words"),
    [
        (Secrets(user=USER, password=PASSWORD), "Gi1/1\nreload", "expected an interface name"),
        (Secrets(user=USER, password="other"), IOS[1], "SSH port PORT refuses user monitor: check its password"),
        (Secrets(password=PASSWORD), IOS[1], "set RIGCTL_CORE_USER and RIGCTL_CORE_PASSWORD"),
    ],
    ids=["a port's name that is none", "a wrong password", "no user"],
)
async def test_a_refusal_says_why_and_none_is_typed(secrets: Secrets, port: str, words: str, tmp_path: Path) -> None:
    async with listening(Switch(*IOS)) as switch:
        said = await refused(asked(switch, tmp_path, secrets), [port])
        assert switch.said == []
    assert words.replace("PORT", str(switch.port)) in said


@pytest.mark.parametrize("known", ["none", "another"])
async def test_an_unknown_host_key_gets_no_password(known: str, tmp_path: Path) -> None:
    async with listening(Switch(*IOS)) as switch:
        wanted = asked(switch, tmp_path, known=False)
        if known == "another":
            other = asyncssh.generate_private_key("ssh-ed25519").export_public_key("openssh").decode()
            (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{switch.port} {other}")
        said = await refused(wanted, [switch.interface])
        assert switch.said == []
    assert "host key" in said
    assert ("is not known" if known == "none" else "a host key that differs from the known one") in said


async def test_a_connection_that_is_cut_is_said_and_the_next_one_works(tmp_path: Path) -> None:
    async with listening(Switch(*IOS, cut_after=2)) as switch:
        wanted = asked(switch, tmp_path)
        async with reader_of(wanted, [switch.interface]) as reader:
            await reader.read()
            with pytest.raises(NodeError, match="core: the connection was cut: "):
                await reader.read()
        switch.cut_after = None
        async with reader_of(wanted, [switch.interface]) as reader:
            assert await reader.read()


@pytest.mark.parametrize(("login_s", "prompt_s"), [(0.5, 2.0), (DEADLINE_S, 0.5)], ids=["login", "prompt"])
async def test_a_switch_that_is_silent_is_given_up(
    login_s: float, prompt_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = cli._options
    monkeypatch.setattr(cli, "_options", lambda *given: options(*given) | {"read_timeout_override": prompt_s})
    monkeypatch.setattr(cli, "_LOGIN_S", login_s)
    async with listening(Switch(*IOS, silent=True)) as switch:
        said = await refused(asked(switch, tmp_path), [switch.interface])
    assert said == f"core: no prompt from 127.0.0.1, SSH port {switch.port}: is that the command line of a cisco_ios?"


async def test_nobody_there_is_said(tmp_path: Path) -> None:
    async with listening(Switch(*IOS)) as switch:
        wanted = asked(switch, tmp_path)
    said = await refused(wanted, [switch.interface])
    assert said == f"core: 127.0.0.1, SSH port {switch.port} can't be reached: check the address, and that SSH is on"
