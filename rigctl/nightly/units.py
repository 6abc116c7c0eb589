"""Texts that start a nightly: a service and a timer of systemd's user manager, or a line for crontab(5)."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import time
from typing import Final

from rigctl.base.errors import InputError

_HOMES: Final = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "PYTHONPATH")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


def unit_name(name: str) -> str:
    return f"rigctl-nightly-{name}"


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a nightly needs to find its own files: systemd and cron do not set them.

    Raise `InputError` for a control character: a newline would split the line for cron.
    """
    for name in _HOMES:
        if _CONTROL.search(environment.get(name, "")):
            raise InputError(
                f"{name}={environment[name]!r}: has a control character, which neither a crontab nor systemd takes. "
                "Set it anew, or unset it"
            )
    said = {name: environment[name] for name in _HOMES if environment.get(name)}
    return {name: os.pathsep.join(map(os.path.abspath, value.split(os.pathsep))) for name, value in said.items()}


def service(name: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the unit that runs one night. News (exit code 1) is no failure of the unit."""
    lines = [
        "[Unit]",
        f"Description=rigctl nightly {name}",
        "",
        "[Service]",
        "Type=oneshot",
        *(f"Environment={_quoted(f'{key}={value}', dollar='$')}" for key, value in environment.items()),
        f"ExecStart={' '.join(_quoted(word, dollar='$$') for word in command)}",
        "SuccessExitStatus=1",
        "# Its own deadline ends a night that hangs; this is for the case that nothing else does.",
        "TimeoutStartSec=22h",
        "TimeoutStopSec=60s",
        "KillMode=mixed",
    ]
    return "\n".join(lines) + "\n"


def timer(name: str, at: time) -> str:
    """Return the unit that starts the service, also after the machine was off at the due time."""
    lines = [
        "[Unit]",
        f"Description=rigctl nightly {name}, at {at:%H:%M}",
        "",
        "[Timer]",
        f"OnCalendar=*-*-* {at:%H:%M}:00",
        "Persistent=true",
        "RandomizedDelaySec=0",
        "AccuracySec=1s",
        f"Unit={unit_name(name)}.service",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return "\n".join(lines) + "\n"


def cron_line(at: time, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the line for `crontab -e`."""
    words = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
    line = " ".join([*words, *map(shlex.quote, command)])
    return f"{at.minute} {at.hour} * * * {line.replace('%', chr(92) + '%')}"  # crontab(5): % ends the command


def _quoted(word: str, dollar: str) -> str:
    """Return one word of a unit file (systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers")."""
    word = word.replace("%", "%%").replace("$", dollar)
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
