"""Reads port counters from a switch's command line over SSH: `show interfaces` of each port, with netmiko.

netmiko blocks, so each call runs in a thread, which ends by netmiko's timeouts or when the session is closed. The
switch's host key must be known, as for nodes.

The parsers for Cisco IOS and Dell OS9 reject an answer that lacks a line with counters, so that a missing counter never
reads as 0.
"""

import asyncio
import contextlib
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from netmiko import BaseConnection, ConnectHandler
from netmiko.exceptions import ReadException, ReadTimeout
from paramiko import Channel
from paramiko.ssh_exception import AuthenticationException, SSHException

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.rig.fields import wrong_file
from rigctl.rig.inventory import Cli, Secrets, Switch
from rigctl.switches.reading import PortCounters, Reader, find_ports
from rigctl.switches.secrets import env_name

_NAME: Final = r"(?P<name>[A-Za-z][A-Za-z0-9 ./:-]{0,255}?)"
_HEAD: Final = re.compile(
    # Any state (reset, initializing, up (looped), …) is accepted if the state of the line protocol follows.
    rf"{_NAME} is (?:(?:up|down|administratively down|deleted)\b|[^,]{{1,60}}, line protocol is ).*"
)
_CLEARED: Final = re.compile(r'Last clearing of "show interface" counters (?P<ago>\S{1,40})')
_CLOCK: Final = re.compile(r"(\d+):(\d\d):(\d\d)")
_SPAN: Final = re.compile(r"(?:\d{1,9}[ywdhms])+")
_PART: Final = re.compile(r"(\d+)([ywdhms])")
_SECONDS: Final = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_MOST_TEXT: Final = 64 * 1024
"""Length limit of an answer in characters; one interface takes about 2,000."""
_SLACK_S: Final = 2.0
"""Tolerance for the time at which counters were cleared; two answers differ by response time and clock drift."""
# Pattern of a line with counters, names of these counters, and a description of the line for error messages.
_Row: TypeAlias = tuple[str, tuple[str, ...], str]
_CISCO_IOS: Final[tuple[_Row, ...]] = (
    (r"^[ \t]*(\d{1,20}) packets input, (\d{1,20}) bytes", ("in_packets", "in_octets"), "packets input"),
    (r"^[ \t]*(\d{1,20}) packets output, (\d{1,20}) bytes", ("out_packets", "out_octets"), "packets output"),
    (
        r"(?i:Input queue: \d{1,20}/\d{1,20}/(\d{1,20})/\d{1,20} \(size/max/drops/flushes\);"
        r" Total output drops: (\d{1,20})\b)",
        ("in_discards", "out_discards"),
        "drops of the queues",
    ),
    (r"^[ \t]*(\d{1,20}) input errors", ("in_errors",), "input errors"),
    (r"^[ \t]*(\d{1,20}) output errors", ("out_errors",), "output errors"),
)
_OS9_SECTION: Final = re.compile(r"^(?=\S)", re.MULTILINE)
_OCTETS: Final = r"(?<!\d)(\d{1,20}) packets, (\d{1,20}) bytes"
_OS9_IN: Final[tuple[_Row, ...]] = (
    (_OCTETS, ("in_packets", "in_octets"), "packets and bytes of the input"),
    (
        r"(?<!\d)(\d{1,20}) CRC, (\d{1,20}) overrun, (\d{1,20}) discarded",
        ("in_errors", "in_errors", "in_discards"),
        "CRC, overrun and discarded of the input",
    ),
    (r"(?<!\d)(\d{1,20}) runts, (\d{1,20}) giants", ("in_errors", "in_errors"), "runts and giants of the input"),
)
_OS9_OUT: Final[tuple[_Row, ...]] = (
    (_OCTETS, ("out_packets", "out_octets"), "packets and bytes of the output"),
    (r"(?<!\d)(\d{1,20}) discarded, \d{1,20} collisions", ("out_discards",), "discarded of the output"),
    (r"bytes, (\d{1,20}) underruns", ("out_errors",), "underruns of the output"),
)


class UnreadableError(Exception):
    """Raised if a text is no answer to `show interfaces` or lacks counters. Its message follows "port NAME: "."""


@dataclass(frozen=True, slots=True)
class PortAnswer:
    """The answer to `show interfaces` for one interface."""

    name: str
    counters: Mapping[str, int]  # names are fields of `PortCounters`
    cleared_s_ago: tuple[float, float]  # least and most seconds since clearing, as the switch rounds; infinite: never


def cisco_ios(text: str) -> PortAnswer:
    """Return the parsed answer of a switch with Cisco IOS (Catalyst 6500 and similar). Raise `UnreadableError`."""
    return PortAnswer(_head(text), _counters(_CISCO_IOS, text), _seconds_since_clear(text))


def dell_os9(text: str) -> PortAnswer:
    """Return the parsed answer of a switch with Dell OS9 (formerly Force10 FTOS). Raise `UnreadableError`."""
    name = _head(text)
    sections = dict(part.partition(":")[::2] for part in reversed(_OS9_SECTION.split(text)))
    if not {"Input Statistics", "Output Statistics"} <= sections.keys():
        raise UnreadableError("the answer to show interfaces has no input and output statistics")
    counters = _counters(_OS9_IN, sections["Input Statistics"])
    counters |= _counters(_OS9_OUT, sections["Output Statistics"])
    return PortAnswer(name, counters, _seconds_since_clear(text))


def _head(text: str) -> str:
    if len(text) > _MOST_TEXT:
        raise UnreadableError(f"the answer to show interfaces is longer than {_MOST_TEXT} characters")
    for line in text.splitlines():
        if (match := _HEAD.match(line.strip())) is not None:
            return match["name"]
    message = next((line.strip() for line in text.splitlines() if line.strip().startswith("%")), "")
    raise UnreadableError(f"the switch prints {message[:80]!r}" if message else "the switch reports no such interface")


def _counters(rows: Iterable[_Row], text: str) -> dict[str, int]:
    """Return the counters by name; numbers that `rows` give the same name, such as runts and giants, are added."""
    counters: dict[str, int] = {}
    for pattern, names, what in rows:
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise UnreadableError(f"the answer to show interfaces has no line with {what}")
        for name, number in zip(names, match.groups(), strict=True):
            counters[name] = counters.get(name, 0) + int(number)
    return counters


def _seconds_since_clear(text: str) -> tuple[float, float]:
    match = _CLEARED.search(text)
    if match is None:
        raise UnreadableError("the answer to show interfaces does not say when the counters were cleared")
    if match["ago"] == "never":
        return math.inf, math.inf
    if (clock := _CLOCK.fullmatch(match["ago"])) is not None:
        hours, minutes, seconds = (int(part) for part in clock.groups())
        ago_s = hours * 3600 + minutes * 60 + seconds
        return ago_s, ago_s + 1
    if _SPAN.fullmatch(match["ago"]) is not None:
        # IOS prints the two largest units (1d02h), OS9 three (2d13h6m). The smallest unit bounds the rounding error.
        parts = [(int(number), _SECONDS[unit]) for number, unit in _PART.findall(match["ago"])]
        ago_s = sum(number * unit_s for number, unit_s in parts)
        return ago_s, ago_s + min(unit_s for _, unit_s in parts)
    raise UnreadableError(f"the time since its counters were cleared, {match['ago'][:20]!r}, cannot be read")


class Clearing:
    """Counts clearings of a port's counters. Two answers mean the same clearing if the times that they give overlap."""

    def __init__(self) -> None:
        self._since_s: tuple[float, float] | None = None
        self._number = 0

    def number(self, now_s: float, ago_s: tuple[float, float]) -> int:
        """Return the number of clearings seen up to this answer, which came at `now_s` of a monotonic clock."""
        low, high = now_s - ago_s[1] - _SLACK_S, now_s - ago_s[0] + _SLACK_S
        known = self._since_s or (low, high)
        if max(known[0], low) <= min(known[1], high):
            self._since_s = max(known[0], low), min(known[1], high)
        else:
            self._number += 1
            self._since_s = low, high
        return self._number


_CONNECT_S: Final = 5.0
_CLI_ANSWER_S: Final = 5.0
_LOGIN_S: Final = 20.0  # TCP, banner, login and first prompts take at most _CONNECT_S each
_PORT: Final = re.compile(r"[A-Za-z][A-Za-z0-9 ./:-]{0,63}", re.ASCII)
_DIALECTS: Final[Mapping[str, tuple[str, Callable[[str], PortAnswer]]]] = {
    "cisco_ios": ("cisco_ios", cisco_ios),
    "dell_os9": ("dell_force10", dell_os9),
}
"""`kind` in the rig file → netmiko's device type, and the parser of its answers."""


@dataclass(slots=True)
class CliReader:
    """Reads the counters of `ports` over an open session. Made by `cli_reader`."""

    switch: Switch
    ports: Sequence[str]
    session: BaseConnection
    parse: Callable[[str], PortAnswer]
    source: str = "cli"
    clearings: dict[str, Clearing] = field(default_factory=dict)

    async def read(self, *, wire: bool = False) -> dict[str, PortCounters]:  # noqa: ARG002 — one command has all there is
        return {port: await self._read(port) for port in self.ports}

    async def _read(self, port: str) -> PortCounters:
        command = f"show interfaces {port}"
        before_ns = time.monotonic_ns()
        try:
            # Without this pattern, netmiko reads the prompt first, and from a slow switch only a part of the prompt.
            prompt = rf"{re.escape(self.session.base_prompt)}[^\n]{{0,40}}[>#]\s*$"
            how: dict[str, Any] = {"expect_string": prompt, "read_timeout": _CLI_ANSWER_S}
            asking = asyncio.to_thread(self.session.send_command, command, **how)
            text = str(await asyncio.wait_for(asking, 2 * _CLI_ANSWER_S))
        except (TimeoutError, ReadTimeout):
            raise NodeError(self.switch.key, f"no answer to `{command}` within {_CLI_ANSWER_S:g} s") from None
        except (OSError, EOFError, SSHException, ReadException) as error:
            raise NodeError(self.switch.key, f"the connection was cut: {_short(error)}") from None
        took_ns = time.monotonic_ns() - before_ns
        t_ns = before_ns + took_ns // 2
        try:
            shown = self.parse(text)
        except UnreadableError as error:
            raise NodeError(self.switch.key, f"port {port}: {error}. Give its name as in `show interfaces`") from None
        if not find_ports([port], {0: (shown.name,)})[0]:
            raise NodeError(self.switch.key, f"port {port}: the switch answers with counters of {shown.name} instead")
        cleared = self.clearings.setdefault(port, Clearing()).number(t_ns / 1e9, shown.cleared_s_ago)
        return PortCounters(t_ns, took_ns, discontinuity=cleared, **shown.counters)


@asynccontextmanager
async def cli_reader(switch: Switch, secrets: Secrets, ports: Sequence[str]) -> AsyncIterator[Reader]:
    """Yield a reader for `ports` of `switch` that has read each port once. Raise `NodeError` if this fails."""
    assert switch.cli is not None  # `reader_of` has checked this
    for port in ports:
        if not _PORT.fullmatch(port):
            raise NodeError(switch.key, f"port {port!r}: expected an interface name, as in GigabitEthernet1/1")
    session = await _open_session(switch, switch.cli, secrets)
    try:
        reader = CliReader(switch, ports, session, _DIALECTS[switch.cli.kind][1])
        await reader.read()
        yield reader
    finally:
        # netmiko's `disconnect` would wait for a switch that may not answer.
        with contextlib.suppress(Exception):
            session.paramiko_cleanup()


async def _open_session(switch: Switch, cli: Cli, secrets: Secrets) -> BaseConnection:
    place, known_hosts = f"{switch.address}, SSH port {cli.port}", cli.known_hosts
    if secrets.user is None:
        names = f"{env_name(switch, 'user')} and {env_name(switch, 'password')}"
        raise NodeError(switch.key, f"no user for the command line: set {names}, or give both in credentials.yaml")
    if known_hosts is not None and (wrong := wrong_file("known_hosts", known_hosts)) is not None:
        raise NodeError(switch.key, wrong)
    options = {
        "device_type": _DIALECTS[cli.kind][0],
        "host": switch.address,
        "port": cli.port,
        "username": secrets.user,
        "password": secrets.password,
        "secret": secrets.enable or "",
        "use_keys": secrets.password is None,
        "allow_agent": secrets.password is None,
        "ssh_strict": True,
        "system_host_keys": known_hosts is None,
        "alt_host_keys": known_hosts is not None,
        "alt_key_file": str(known_hosts or ""),
        "conn_timeout": _CONNECT_S,
        "auth_timeout": _CONNECT_S,
        "banner_timeout": _CONNECT_S,
    }
    try:
        connecting = asyncio.to_thread(_connect, options, enable=secrets.enable is not None)
        return await asyncio.wait_for(connecting, _LOGIN_S)
    except (TimeoutError, ReadTimeout):
        raise NodeError(switch.key, f"no prompt from {place}. Is `kind: {cli.kind}` right?") from None
    except (OSError, EOFError, ValueError, SSHException) as error:
        raise NodeError(switch.key, _meaning(error, place, secrets.user)) from None


def _connect(options: dict[str, Any], *, enable: bool) -> BaseConnection:
    # Without a handler, paramiko's logger would print tracebacks on the terminal.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    session = ConnectHandler(**options)
    if enable:
        try:
            session.enable()
        except BaseException:
            session.paramiko_cleanup()
            raise
    _end_noticed(session.remote_conn)
    return session


def _end_noticed(channel: Channel) -> None:
    """Make `recv_ready` return True at the end of a session, because netmiko detects the end only by reading."""
    has_data = channel.recv_ready
    channel.recv_ready = lambda: has_data() or channel.closed or channel.eof_received


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
        return f"{place} refuses the command `enable` to user {user}: check the enable password"
    return f"{place}: {_short(error)}"


def _short(error: Exception) -> str:
    lines = [printable(line.strip()) for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:160] or type(error).__name__
