"""Installs a nightly: settings, and units of systemd's user manager or, without systemd, a line for crontab(5)."""

import getpass
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import run_bounded
from rigctl.nightly import settings as files
from rigctl.nightly.schedule import NightlyState, state_of
from rigctl.nightly.settings import NightlySettings
from rigctl.nightly.zone import skipped_nights, zone_named, zone_of_machine, zone_of_shell

_HOMES: Final = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "PYTHONPATH")
_ANSWER_S: Final = 30.0
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


def unit_name(name: str) -> str:
    return f"rigctl-nightly-{name}"


def variables_to_pass(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a nightly needs to find its files; systemd and cron do not set them."""
    for name in _HOMES:
        if _CONTROL.search(environment.get(name, "")):
            raise InputError(
                f"{name}={environment[name]!r}: has a control character, which neither a crontab nor systemd accepts. "
                "Change or unset the variable"
            )
    given = {name: environment[name] for name in _HOMES if environment.get(name)}
    return {name: os.pathsep.join(map(os.path.abspath, value.split(os.pathsep))) for name, value in given.items()}


def service(name: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the systemd unit that runs one night. Exit code 1 (a change, or a missed bound) does not fail the unit."""
    variables = "".join(f"Environment={_quote(f'{key}={value}', dollar='$')}\n" for key, value in environment.items())
    return f"""\
[Unit]
Description=rigctl nightly {name}

[Service]
Type=oneshot
{variables}ExecStart={" ".join(_quote(word, dollar="$$") for word in command)}
SuccessExitStatus=1
# rigctl ends a run at its own deadline; this one is the last resort.
TimeoutStartSec=22h
TimeoutStopSec=60s
KillMode=mixed
"""


def timer(name: str, at: time, skipped: Sequence[datetime] = ()) -> str:
    """Return the systemd timer that starts the service at `at`, or after a power-off once the machine is up.

    `skipped` are the nights whose time of day the clocks skip: each has a line of its own.
    """
    zone = f" {at.tzinfo}" if at.tzinfo is not None else ""
    times = [f"*-*-* {at:%H:%M}:00", *(f"{due:%Y-%m-%d %H:%M:%S}" for due in skipped)]
    calendar = "".join(f"OnCalendar={each}{zone}\n" for each in times)
    return f"""\
[Unit]
Description=rigctl nightly {name}, at {at:%H:%M}{zone}

[Timer]
{calendar}Persistent=true
RandomizedDelaySec=0
AccuracySec=1s
Unit={unit_name(name)}.service

[Install]
WantedBy=timers.target
"""


def cron_line(at: time, command: Sequence[str], environment: Mapping[str, str]) -> str:
    words = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
    line = " ".join([*words, *map(shlex.quote, command)])
    return f"{at.minute} {at.hour} * * * {line.replace('%', chr(92) + '%')}"  # in crontab(5) a % ends the command


def _quote(word: str, dollar: str) -> str:
    """Return `word` quoted for a unit file (systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers")."""
    word = word.replace("%", "%%").replace("$", dollar)
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Installation:
    """A nightly, its files, and a remark to the user. `cron`: line for crontab if there is no systemd, else None."""

    settings: NightlySettings
    file: Path
    units: tuple[Path, ...]
    cron: str | None
    remark: str | None = None


def night_command(name: str) -> list[str]:
    """Return the command that runs a night, as a list of words."""
    return [sys.executable, "-m", "rigctl", "nightly", "run", name]


def unit_files(name: str) -> tuple[Path, Path]:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    return base / f"{unit_name(name)}.service", base / f"{unit_name(name)}.timer"


def install(name: str, settings: NightlySettings, now_s: float) -> Installation:
    """Write settings and units, start the timer and return the result. A nightly with the same name is replaced.

    The settings get the time zone by which systemd or cron starts the nightly.
    """
    environment = variables_to_pass(os.environ)
    systemd = usable()
    zone = zone_of_shell(os.environ) if systemd else zone_of_machine()
    at = settings.at.replace(tzinfo=zone_named(zone) if zone else None)
    settings = settings.model_copy(update={"zone": zone, "at": at})
    environment |= {} if zone is None else {"TZ": zone}
    file = files.save(name, settings)
    state = state_of(state_file(name), now_s)
    state.installed_at = state.looked_until = now_s  # nights due under an earlier schedule do not count as missed
    state.save()
    if not systemd:
        return Installation(settings, file, (), cron_line(settings.at, night_command(name), environment))
    units = unit_files(name)
    try:
        units[0].parent.mkdir(parents=True, exist_ok=True)
        units[0].write_text(service(name, night_command(name), environment), encoding="utf-8")
        units[1].write_text(timer(name, settings.at, skipped_nights(settings.at, now_s)), encoding="utf-8")
    except OSError as error:
        raise RigError(f"{error.filename}: cannot be written: {error.strerror}") from error
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", units[1].name)
    _systemctl("restart", units[1].name)  # start again, because a replaced timer may have had another time
    lingers = Path("/var/lib/systemd/linger", getpass.getuser()).exists()
    advice = "The nightly runs only while you are logged in. `loginctl enable-linger` lets it run at any time."
    return Installation(settings, file, units, None, None if lingers else advice)


def uninstall(name: str) -> list[Path]:
    """Stop the timer and remove the files of `install`; return the removed files. Nights stay in the store."""
    units = unit_files(name)
    known = (files.file_of(name), *units, state_file(name)) if files.NIGHTLY_NAME.fullmatch(name) else ()
    found = [path for path in known if path.exists()]
    if not found:
        files.load_settings(name)  # raises `InputError` that lists the installed nightlies
    systemd = usable()
    if units[1] in found and systemd:
        _systemctl("disable", "--now", units[1].name)
    for path in found:
        path.unlink(missing_ok=True)
    if systemd:
        _systemctl("daemon-reload")
    return found


def state_file(name: str) -> Path:
    return files.state_folder() / f"{name}.json"


def state(name: str, now_s: float) -> NightlyState:
    """Return the state of a nightly; without a state file, as if installed when its settings file was written."""
    file = files.file_of(name)
    return state_of(state_file(name), file.stat().st_mtime if file.exists() else now_s)


def usable() -> bool:
    """Tell whether this user has a running systemd."""
    try:
        return not _ask("show-environment").returncode
    except RigError:
        return False


def timer_active(name: str) -> bool | None:
    """Tell whether the timer is active; None if there is no systemd or no timer, because cron starts the nightly."""
    unit = unit_files(name)[1]
    return not _ask("is-active", "--quiet", unit.name).returncode if unit.exists() and usable() else None


def _systemctl(*words: str) -> None:
    done = _ask(*words)
    if done.returncode:
        complaint = done.stderr.decode("utf-8", "replace").strip()
        raise RigError(f"systemctl --user {' '.join(words)}: {complaint or f'exit code {done.returncode}'}")


def _ask(*words: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return run_bounded(["systemctl", "--user", *words], _ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"systemctl --user {' '.join(words)}: {error}") from error
