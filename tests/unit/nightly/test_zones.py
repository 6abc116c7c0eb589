"""Nights when clocks change: one a day, when systemd and cron start it, in the zone of the nightly."""

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cases import from_file

from rigctl.base.errors import InputError
from rigctl.nightly import install, settings, zone
from rigctl.nightly.install import timer
from rigctl.nightly.schedule import date_of, due_times, moment, next_due
from rigctl.nightly.settings import NightlySettings

GIVEN: dict[str, Any] = {"scenario": "/lab/s.yaml", "rig": "gigablox", "at": "02:30", "store": "/data/rigctl.db"}


def at(text: str, place: ZoneInfo) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=place).timestamp()


@from_file
def test_the_night_of_a_change_is_due_once_in_every_zone(
    name: str, hour: str, first: str, last: str, expected: list[str]
) -> None:
    place = ZoneInfo(name)
    wanted = time.fromisoformat(hour).replace(tzinfo=place)
    due = [datetime.fromtimestamp(each, place) for each in due_times(wanted, at(first, place), at(last, place))]
    assert [f"{night:%m-%d %H:%M%z}" for night in due] == expected


ZONES = (
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo", "Pacific/Chatham",
    "Asia/Kolkata", "Africa/Casablanca", "Etc/UTC", "America/Santiago",
)  # fmt: skip


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("hour", ["00:30", "02:00", "02:15", "02:59", "03:00"])
def test_all_days_of_two_years_have_one_night_each(name: str, hour: str) -> None:
    place = ZoneInfo(name)
    wanted = time.fromisoformat(hour).replace(tzinfo=place)
    due = due_times(wanted, at("2026-12-31 12:00", place), at("2028-12-31 12:00", place))
    nights = [datetime.fromtimestamp(each, place) for each in due]
    assert [night.date() for night in nights] == [nights[0].date() + timedelta(days=day) for day in range(731)]
    moved = [night for night in nights if night.time() != wanted.replace(tzinfo=None)]
    assert len(moved) <= 2
    for night in moved:  # the clocks have just jumped over the time of day
        before = (night.astimezone(UTC) - timedelta(seconds=1)).astimezone(place)
        assert wanted.replace(tzinfo=None) < night.time()
        assert before.utcoffset() != night.utcoffset()


@from_file
def test_a_timer_has_a_line_for_each_night_that_the_clocks_skip(name: str, hour: str, lines: list[str]) -> None:
    place = ZoneInfo(name)
    wanted = time.fromisoformat(hour).replace(tzinfo=place)
    written = timer("lab", wanted, zone.skipped_nights(wanted, at("2027-01-01 12:00", place))).splitlines()
    calendar = [line.removeprefix("OnCalendar=") for line in written if line.startswith("OnCalendar=")]
    assert calendar[0] == f"*-*-* {hour}:00 {name}"
    assert calendar[1 : 1 + len(lines)] == [f"{line} {name}" for line in lines]
    assert len(calendar) - 1 == (10 if lines else 0)


@from_file
def test_the_zone_of_a_nightly_is_that_of_the_shell_or_of_the_machine(
    tz: str | None, link: str | None, named: str | None, expected: str | None, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(zone, "_OF_MACHINE", tmp_path / "localtime")
    monkeypatch.setattr(zone, "_NAME_OF_MACHINE", tmp_path / "timezone")
    if link == "":  # a copy, which has no name
        (tmp_path / "localtime").write_bytes(b"TZif2")
    elif link is not None:
        (tmp_path / "localtime").symlink_to(link)
    if named is not None:
        (tmp_path / "timezone").write_text(f"{named}\n")
    assert zone.zone_of_shell({} if tz is None else {"TZ": tz}) == expected


@pytest.mark.parametrize("given", ["CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Atlantis", "UTC0", "../../etc/passwd"])
def test_a_tz_that_names_no_zone_is_refused(given: str) -> None:
    with pytest.raises(InputError, match=r"^TZ='.*': names no time zone.*Europe/Berlin, or unset it$"):
        zone.zone_of_shell({"TZ": given})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setattr(zone, "zone_of_machine", lambda: "Europe/Berlin")
    monkeypatch.setattr(install, "zone_of_machine", lambda: "Europe/Berlin")
    return tmp_path


@pytest.mark.parametrize("tz", ["America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_systemd_gets_the_zone_of_the_shell_and_cron_that_of_the_machine(
    tz: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", tz)
    given = NightlySettings.model_validate(GIVEN | {"publish": str(home / "site")})
    now_s = at("2026-11-29 12:00", ZoneInfo("UTC"))
    monkeypatch.setattr(install, "usable", lambda: True)
    monkeypatch.setattr(install, "_systemctl", lambda *_: None)
    done = install.install("lab", given, now_s)
    own = settings.load_settings("lab")
    assert own == done.settings
    assert (own.zone, moment(next_due(own.at, now_s), own.at.tzinfo)[-5:]) == (tz, "02:30")
    assert f"Environment=TZ={tz}\n" in done.units[0].read_text()
    assert f"OnCalendar=*-*-* 02:30:00 {tz}\n" in done.units[1].read_text()
    monkeypatch.setattr(install, "usable", lambda: False)
    done = install.install("lab", given, now_s)
    assert settings.load_settings("lab").zone == done.settings.zone == "Europe/Berlin"
    assert done.cron is not None
    assert done.cron.startswith("30 2 * * * ")
    assert " TZ=Europe/Berlin " in done.cron


def test_settings_without_a_zone_have_local_time_and_an_unknown_zone_is_a_mistake(home: Path) -> None:
    assert NightlySettings.model_validate(GIVEN).at == time(2, 30)
    file = settings.save("lab", NightlySettings.model_validate(GIVEN | {"zone": "Asia/Kolkata"}))
    assert settings.load_settings("lab").at == time(2, 30, tzinfo=ZoneInfo("Asia/Kolkata"))
    file.write_text(file.read_text().replace("Asia/Kolkata", "Asia/Atlantis"))
    with pytest.raises(InputError, match=r'zone "Asia/Atlantis": no such time zone'):
        settings.load_settings("lab")


def test_dates_are_those_of_the_zone_of_the_nightly_wherever_the_status_is_read() -> None:
    due_at = at("2026-11-29 00:30", ZoneInfo("Pacific/Auckland"))
    assert date_of(due_at, ZoneInfo("Pacific/Auckland")) == "2026-11-29"
    assert date_of(due_at) == "2026-11-28"
    assert moment(due_at, ZoneInfo("Asia/Kolkata")) == "2026-11-28 17:00"
