"""Switch counters by the switch's command line over SSH: `show interfaces` of each port, by netmiko.

netmiko blocks, so each call runs in a thread, which ends by netmiko's timeouts. A session that is given up is cut,
which ends the thread too. Host keys are checked as with SSH to nodes.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from netmiko import BaseConnection, ConnectHandler
from netmiko.exceptions import ReadTimeout
from paramiko.ssh_exception import AuthenticationException, SSHException

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.probe.switches.reading import PortCounters, Reader, resolved
from rigctl.probe.switches.secrets import variable
from rigctl.probe.switches.show_interfaces import Clearing, Shown, UnreadableError, cisco_ios, dell_os9
from rigctl.rig.files import wrong_file
from rigctl.rig.inventory import Secrets, Switch

CONNECT_S: Final = 5.0
ANSWER_S: Final = 5.0
_LOGIN_S: Final = 20.0  # TCP, banner, login and the first prompts, each with CONNECT_S
_PORT: Final = re.compile(r"[A-Za-z][A-Za-z0-9 ./:-]{0,63}", re.ASCII)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Dialect:
    netmiko: str
    parse: Callable[[str], Shown]


_DIALECTS: Final[Mapping[str, _Dialect]] = {
    "cisco_ios": _Dialect("cisco_ios", cisco_ios),
    "dell_os9": _Dialect("dell_force10", dell_os9),
}


@dataclass(slots=True)
class CliReader:
    """An open session. Made by `cli_reader`."""

    switch: Switch
    ports: Sequence[str]
    session: BaseConnection
    parse: Callable[[str], Shown]
    source: str = "cli"
    clearings: dict[str, Clearing] = field(default_factory=dict)

    async def read(self) -> dict[str, PortCounters]:
        """Return the counters of all ports, read one after the other. Raise `NodeError`."""
        return {port: await self._read(port) for port in self.ports}

    async def _read(self, port: str) -> PortCounters:
        command = f"show interfaces {port}"
        before_ns = time.monotonic_ns()
        try:
            text = await _threaded(lambda: self._said(command), 2 * ANSWER_S)
        except TimeoutError:
            raise NodeError(self.switch.key, f"no answer to `{command}` within {ANSWER_S:g} s") from None
        except (OSError, EOFError, SSHException) as error:
            raise NodeError(self.switch.key, f"the connection was cut: {_short(error)}") from None
        took_ns = time.monotonic_ns() - before_ns
        t_ns = before_ns + took_ns // 2
        try:
            shown = self.parse(text)
        except UnreadableError as error:
            raise NodeError(self.switch.key, f"port {port}: {error}. Names are as in `show interfaces`") from None
        if not resolved([port], {0: (shown.name,)})[0]:
            raise NodeError(self.switch.key, f"port {port}: it answers for {shown.name} instead")
        cleared = self.clearings.setdefault(port, Clearing()).number(t_ns / 1e9, shown.cleared_s_ago)
        return PortCounters(t_ns, took_ns, discontinuity=cleared, **shown.counters)

    def _said(self, command: str) -> str:
        try:
            return str(self.session.send_command(command, read_timeout=ANSWER_S))
        except ReadTimeout:
            raise TimeoutError from None


@asynccontextmanager
async def cli_reader(switch: Switch, secrets: Secrets, ports: Sequence[str]) -> AsyncIterator[Reader]:
    """Yield a session on `switch`, in which each of `ports` has answered once.

    Raise `NodeError` with the switch's key: unreachable, host key, login, or a port that it does not have.
    """
    assert switch.cli is not None  # the caller chose by it
    for port in ports:
        if not _PORT.fullmatch(port):
            raise NodeError(switch.key, f"port {port!r}: expected an interface name, as in GigabitEthernet1/1")
    dialect = _DIALECTS[switch.cli.kind]
    session = await _opened(switch, secrets, dialect)
    try:
        reader = CliReader(switch, ports, session, dialect.parse)
        await reader.read()
        yield reader
    finally:
        # Not netmiko's own farewell, which talks with a switch that may be silent.
        with contextlib.suppress(Exception):
            session.paramiko_cleanup()


async def _opened(switch: Switch, secrets: Secrets, dialect: _Dialect) -> BaseConnection:
    assert switch.cli is not None
    place = f"{switch.address}, SSH port {switch.cli.port}"
    if secrets.user is None:
        names = f"{variable(switch, 'user')} and {variable(switch, 'password')}"
        raise NodeError(switch.key, f"no user for its command line: set {names}, or name them in credentials.yaml")
    known_hosts = switch.cli.known_hosts
    if known_hosts is not None and (wrong := wrong_file("known_hosts", known_hosts)) is not None:
        raise NodeError(switch.key, wrong)
    options = _options(switch, secrets, dialect)
    try:
        return await _threaded(lambda: _connected(options, enable=secrets.enable is not None), _LOGIN_S)
    except TimeoutError:
        raise NodeError(
            switch.key, f"no prompt from {place}: is that the command line of a {switch.cli.kind}?"
        ) from None
    except (OSError, EOFError, ValueError, SSHException) as error:
        raise NodeError(switch.key, _meaning(error, place, secrets.user)) from None


def _options(switch: Switch, secrets: Secrets, dialect: _Dialect) -> dict[str, Any]:
    assert switch.cli is not None
    known_hosts = switch.cli.known_hosts
    return {
        "device_type": dialect.netmiko,
        "host": switch.address,
        "port": switch.cli.port,
        "username": secrets.user,
        "password": secrets.password,
        "secret": secrets.enable or "",
        "use_keys": secrets.password is None,
        "allow_agent": secrets.password is None,
        "ssh_strict": True,
        "system_host_keys": known_hosts is None,
        "alt_host_keys": known_hosts is not None,
        "alt_key_file": str(known_hosts or ""),
        "conn_timeout": CONNECT_S,
        "auth_timeout": CONNECT_S,
        "banner_timeout": CONNECT_S,
    }


def _connected(options: dict[str, Any], *, enable: bool) -> BaseConnection:
    # Without a handler paramiko's log would write tracebacks to the terminal.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    try:
        session = ConnectHandler(**options)
        if enable:
            try:
                session.enable()
            except BaseException:
                session.paramiko_cleanup()
                raise
    except ReadTimeout:
        raise TimeoutError from None
    return session


def _meaning(error: Exception, place: str, user: str) -> str:
    text = str(error)
    if isinstance(error, AuthenticationException):
        return f"{place} refuses user {user}: check its password"
    if "not found in known_hosts" in text:
        return f"the host key of {place} is not known: check it and add it with ssh-keyscan, or set known_hosts"
    if "does not match" in text:
        return f"{place} has a host key that differs from the known one: is it the same switch?"
    if "TCP connection" in text or "DNS" in text:
        return f"{place} can't be reached: check the address, and that SSH is on"
    if isinstance(error, ValueError):
        return f"{place} did not let user {user} enable: check its enable password"
    return f"{place}: {_short(error)}"


def _short(error: Exception) -> str:
    lines = [printable(line.strip()) for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:160] or type(error).__name__


async def _threaded(call: Callable[[], _T], deadline_s: float) -> _T:
    async with asyncio.timeout(deadline_s):
        return await asyncio.to_thread(call)
