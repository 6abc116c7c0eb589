"""SSH servers that speak as switches do: prompts, echo, paging, `enable`, `show interfaces`; counters that grow."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

USER, PASSWORD, ENABLE = "monitor", "pass-word", "en-able"
FIXTURES = Path(__file__).parents[1] / "unit" / "fixtures" / "switches"
LINES_PER_PAGE = 24


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
        cleared = "00:17:26" if self.kind == "cisco_ios" else "1d02h"
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
            await asyncio.sleep(60)
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
            if self.paged and at and at % LINES_PER_PAGE == 0:
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

    handler: Callable[[asyncssh.SSHServerProcess[str]], object] = serve
    server = await asyncssh.create_server(
        _Server,
        "127.0.0.1",
        0,
        server_host_keys=[key],
        process_factory=handler,
        line_editor=False,
        encoding="utf-8",
    )
    switch.port = server.sockets[0].getsockname()[1]
    switch.host_key = f"[127.0.0.1]:{switch.port} {key.export_public_key('openssh').decode().strip()}\n"
    try:
        yield switch
    finally:
        server.close()
        await server.wait_closed()
