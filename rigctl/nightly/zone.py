"""The time zone of a nightly: found when it is installed, named in its settings, and passed on to its timer.

systemd and cron do not have the TZ of the shell in which a nightly is installed. systemd takes the zone of a time of
day (systemd.time(7)). cron takes this machine's zone (crontab(5)), so a nightly that cron starts has that one.
"""

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rigctl.base.errors import InputError

_YEARS: Final = 10
_OF_MACHINE: Final = Path("/etc/localtime")
_NAME_OF_MACHINE: Final = Path("/etc/timezone")
_FOLDER: Final = "zoneinfo/"


@cache
def zone_named(name: str) -> ZoneInfo | None:
    """Return the time zone of this name in the tz database; None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def zone_of_machine() -> str | None:
    """Return the name of this machine's time zone (localtime(5)); None if it has no name. Without a file, it is UTC."""
    if not os.path.lexists(_OF_MACHINE):
        return "UTC"
    names = [os.path.realpath(_OF_MACHINE).rpartition(_FOLDER)[2]]
    if _NAME_OF_MACHINE.is_file():
        names.append(_NAME_OF_MACHINE.read_text("utf-8", "replace").strip())
    return next((name for name in names if zone_named(name)), None)


def zone_of_shell(environment: Mapping[str, str]) -> str | None:
    """Return the name of the zone in TZ, else of this machine's. Raise `InputError` for a TZ that names none."""
    given = environment.get("TZ")
    if given is None:
        return zone_of_machine()
    name = given.removeprefix(":").rpartition(_FOLDER)[2] or "UTC"
    if zone_named(name) is None:
        raise InputError(
            f"TZ={given!r}: names no time zone, so systemd could not start a nightly by it. Set TZ to a name, as "
            "Europe/Berlin, or unset it"
        )
    return name


def due_on(day: date, at: time) -> float:
    """Return the Unix time at which a night is due on a day: at the local time `at`, in its zone if it has one.

    If the clocks skip that time, the night is due when they have jumped, as cron(8) starts it. If that time occurs
    twice, the night is due at the first (PEP 495).
    """
    due = datetime.combine(day, at).timestamp()
    other = datetime.combine(day, at.replace(fold=1)).timestamp()
    if other >= due:
        return due
    # The clocks jump between both: the earlier one has the offset before the jump, the later one that behind it.
    before, behind = int(other), int(due)
    offset = _offset(before, at)
    while behind - before > 1:
        middle = (before + behind) // 2
        before, behind = (middle, behind) if _offset(middle, at) == offset else (before, middle)
    return float(behind)


def skipped_nights(at: time, now_s: float) -> list[datetime]:
    """Return when the nights of the next years are due whose time of day the clocks skip: local times in UTC's place.

    systemd does not start a timer whose time does not exist on that day.
    """
    today = datetime.fromtimestamp(now_s, at.tzinfo).date()
    found = []
    for number in range(366 * _YEARS):
        day = today + timedelta(days=number)
        if datetime.combine(day, at.replace(fold=1)).timestamp() < datetime.combine(day, at).timestamp():
            found.append(datetime.fromtimestamp(due_on(day, at), at.tzinfo))
    return found


def _offset(moment: int, at: time) -> timedelta | None:
    local = datetime.fromtimestamp(moment, UTC).astimezone(at.tzinfo)
    return local.utcoffset()
