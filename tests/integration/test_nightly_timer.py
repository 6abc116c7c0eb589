"""Timers of nightlies as systemd itself reads them: each night has one start, also where the clocks change."""

import re
import subprocess
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from processes import output_of

from rigctl.nightly.install import service, timer, unit_name
from rigctl.nightly.schedule import due_times
from rigctl.nightly.zone import skipped_nights

_IN_UTC = re.compile(r"(?:\(in UTC\)|Next elapse|Iter\. #\d+): \w{3} ([-\d]+ [:\d]+) UTC")
DAYS = 5


def starts(lines: list[str], base: datetime) -> list[float]:
    """Return when systemd starts a timer with these lines in the days after `base`."""
    words = ["systemd-analyze", "calendar", f"--iterations={DAYS + 1}", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC"]
    found: set[float] = set()
    for line in lines:
        # An exit code of 1 means that the line names no time after `base`.
        done = subprocess.run(
            [*words, line], env={"TZ": "UTC"}, capture_output=True, text=True, check=False, timeout=60
        )
        assert "Normalized form" in done.stdout, done.stderr
        times = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in _IN_UTC.findall(done.stdout)]
        found.update(each.timestamp() for each in times if base < each <= base + timedelta(days=DAYS))
    return sorted(found)


@pytest.mark.parametrize("hour", ["00:30", "01:30", "02:00", "02:15", "02:30", "03:00"])
@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", "2027-03-28"),
        ("Europe/Berlin", "2027-10-31"),
        ("America/New_York", "2027-03-14"),
        ("America/New_York", "2027-11-07"),
        ("Australia/Lord_Howe", "2027-10-03"),
        ("Australia/Lord_Howe", "2027-04-04"),
        ("America/Santiago", "2027-09-05"),
        ("Asia/Kolkata", "2027-03-28"),
    ],
)
def test_systemd_starts_each_night_when_it_is_due(zone: str, change: str, hour: str) -> None:
    at = time.fromisoformat(hour).replace(tzinfo=ZoneInfo(zone))
    base = datetime.fromisoformat(change).replace(hour=12, tzinfo=UTC) - timedelta(days=3)
    written = timer("lab", at, skipped_nights(at, datetime(2027, 1, 1, tzinfo=UTC).timestamp())).splitlines()
    lines = [line.removeprefix("OnCalendar=") for line in written if line.startswith("OnCalendar=")]
    due = due_times(at, base.timestamp(), (base + timedelta(days=DAYS)).timestamp())
    assert starts(lines[:2], base) == due
    assert len(due) == DAYS


def test_systemd_takes_the_units_with_a_zone(tmp_path: Path) -> None:
    at = time(2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    (tmp_path / f"{unit_name('lab')}.timer").write_text(timer("lab", at, skipped_nights(at, 1.8e9)))
    (tmp_path / f"{unit_name('lab')}.service").write_text(service("lab", ["/bin/true"], {"TZ": "Europe/Berlin"}))
    for unit in tmp_path.iterdir():
        assert output_of(["systemd-analyze", "verify", "--man=no", str(unit)]) == ""
