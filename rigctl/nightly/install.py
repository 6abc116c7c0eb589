"""Install a nightly: its settings, and the units of systemd's user manager, if there is one."""

import getpass
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError
from rigctl.nightly import settings as files
from rigctl.nightly.settings import Settings
from rigctl.nightly.state import State, state_of
from rigctl.nightly.units import cron_line, passed_on, service, timer, unit_name

SYSTEMCTL_S: Final = 30.0
_LINGER: Final = Path("/var/lib/systemd/linger")


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed nightly. `cron`: the line that starts it on a machine without systemd."""

    settings: Path
    units: tuple[Path, ...]
    cron: str | None
    remark: str | None = None


def command(name: str) -> list[str]:
    """Return the command of a night, with absolute paths."""
    return [sys.executable, "-m", "rigctl", "nightly", "run", name]


def unit_files(name: str) -> tuple[Path, Path]:
    """Return the paths of the service and the timer."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    return base / f"{unit_name(name)}.service", base / f"{unit_name(name)}.timer"


def install(name: str, settings: Settings, now_s: float) -> Installed:
    """Write settings and units, and start the timer. A nightly of that name is replaced.

    Raise `RigError` if a file cannot be written or systemd refuses, `InputError` for an invalid environment.
    """
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
    _systemctl("restart", units[1].name)  # a timer that was there may have another time
    lingers = (_LINGER / getpass.getuser()).exists()
    advice = "It runs only while you are logged in. `loginctl enable-linger` lets it run at any time."
    return Installed(file, units, None, None if lingers else advice)


def remove(name: str) -> list[Path]:
    """Stop the timer and remove the files of `install`. The store keeps its nights. Return the removed files.

    Raise `InputError` for a name that is not installed.
    """
    units = unit_files(name)
    known = (files.file_of(name), *units, state_file(name)) if files.NAME.fullmatch(name) else ()
    found = [path for path in known if path.exists()]
    if not found:
        files.load(name)  # raises an error that names the installed ones
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


def state(name: str, now_s: float) -> State:
    """Return the state of a nightly. Without a file of it, the nightly was installed when its settings were written."""
    file = files.file_of(name)
    return state_of(state_file(name), file.stat().st_mtime if file.exists() else now_s)


def usable() -> bool:
    """Tell whether this user has a running systemd."""
    try:
        return not _asked("show-environment").returncode
    except RigError:
        return False


def timer_active(name: str) -> bool | None:
    """Tell whether the timer runs. Return None without systemd or a timer: cron starts the nightly."""
    unit = unit_files(name)[1]
    return not _asked("is-active", "--quiet", unit.name).returncode if unit.exists() and usable() else None


def _systemctl(*words: str) -> None:
    done = _asked(*words)
    if done.returncode:
        raise RigError(f"systemctl --user {' '.join(words)}: {done.stderr.strip() or f'exit code {done.returncode}'}")


def _asked(*words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            ["systemctl", "--user", *words], capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"systemctl --user {' '.join(words)}: {error}") from error
