"""Putting a nightly in its place: its settings, and the units of systemd's user manager where there is one."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError, RigError
from rigctl.nightly import settings as files
from rigctl.nightly.settings import Settings
from rigctl.nightly.state import State, state_of
from rigctl.nightly.units import cron_line, passed_on, service, timer, unit_name

SYSTEMCTL_S: Final = 30.0
_LINGER: Final = Path("/var/lib/systemd/linger")


@dataclass(frozen=True, slots=True)
class Installed:
    """`cron`: the line that starts it where systemd does not."""

    settings: Path
    units: tuple[Path, ...]
    cron: str | None
    remark: str | None = None


def command(name: str) -> list[str]:
    """What starts a night, with absolute paths."""
    return [sys.executable, "-m", "rigctl", "nightly", "run", name]


def unit_files(name: str) -> tuple[Path, Path]:
    """The service and the timer."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    return base / f"{unit_name(name)}.service", base / f"{unit_name(name)}.timer"


def install(name: str, settings: Settings, now_s: float) -> Installed:
    """Write settings and units, and start the timer. One of that name is replaced. Raises `RigError`, `InputError`."""
    environment = passed_on(os.environ)
    file = files.save(name, settings)
    state = state_of(state_file(name), now_s)
    state.installed_at = state.looked_until = now_s  # what was due before is no missed night of this schedule
    state.save()
    if not usable():
        return Installed(file, (), cron_line(settings.at, command(name), environment))
    units = unit_files(name)
    try:
        units[0].parent.mkdir(parents=True, exist_ok=True)
        units[0].write_text(service(name, command(name), environment))
        units[1].write_text(timer(name, settings.at))
    except OSError as error:
        raise RigError(f"{error.filename}: cannot be written: {error.strerror}") from error
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", units[1].name)
    _systemctl("restart", units[1].name)  # of one that was there with another time
    return Installed(file, units, None, _linger())


def remove(name: str) -> list[Path]:
    """Stop the timer and remove what `install` wrote. The store keeps its nights. Raises `InputError` for none."""
    file = files.file_of(name)
    units = unit_files(name)
    found = [path for path in (file, *units, state_file(name)) if files.NAME.fullmatch(name) and path.exists()]
    if not found:
        files.load(name)  # tells what is installed
        raise InputError(f'no nightly "{name}"')
    if units[1] in found and usable():
        _systemctl("disable", "--now", units[1].name)
    for path in found:
        path.unlink(missing_ok=True)
    if any(unit in found for unit in units) and usable():
        _systemctl("daemon-reload")
    return found


def state_file(name: str) -> Path:
    return files.state_folder() / f"{name}.json"


def state(name: str, now_s: float) -> State:
    """What the nightly remembers; of one without memory, that it was installed when its settings were written."""
    file = files.file_of(name)
    return state_of(state_file(name), file.stat().st_mtime if file.exists() else now_s)


def usable() -> bool:
    """Whether this user has a running systemd."""
    try:
        asked = subprocess.run(
            ["systemctl", "--user", "show-environment"], capture_output=True, timeout=SYSTEMCTL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def timer_active(name: str) -> bool | None:
    """Whether its timer runs; None: there is no systemd to ask, or no timer (cron starts it)."""
    unit = unit_files(name)[1]
    if not unit.exists() or not usable():
        return None
    asked = subprocess.run(
        ["systemctl", "--user", "is-active", "--quiet", unit.name],
        capture_output=True,
        timeout=SYSTEMCTL_S,
        check=False,
    )
    return asked.returncode == 0


def _systemctl(*words: str) -> None:
    try:
        done = subprocess.run(
            ["systemctl", "--user", *words], capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"systemctl --user {' '.join(words)}: {error}") from error
    if done.returncode:
        raise RigError(f"systemctl --user {' '.join(words)}: {done.stderr.strip() or f'exit code {done.returncode}'}")


def _linger() -> str | None:
    import getpass

    if (_LINGER / getpass.getuser()).exists():
        return None
    return "It runs only while you are logged in. `loginctl enable-linger` lets it run at any time."
