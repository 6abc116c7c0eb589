"""When nights are due, over the year."""

from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest

from rigctl.nightly.schedule import due_times, latest_due, next_due

BERLIN = ZoneInfo("Europe/Berlin")
HALF_PAST_TWO = time(2, 30)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def shown(instants: list[float]) -> list[str]:
    return [f"{datetime.fromtimestamp(instant, BERLIN):%m-%d %H:%M%z}" for instant in instants]


def test_a_night_is_due_at_its_instant_and_not_before() -> None:
    due = at("2026-11-20 02:30:00")
    assert latest_due(HALF_PAST_TWO, due, BERLIN) == due
    assert latest_due(HALF_PAST_TWO, due - 1, BERLIN) == due - 86400
    assert next_due(HALF_PAST_TWO, due - 1, BERLIN) == due
    assert next_due(HALF_PAST_TWO, due, BERLIN) == due + 86400


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        ("2026-03-28 00:00", "2026-03-31 00:00", ["03-28 02:30+0100", "03-29 03:30+0200", "03-30 02:30+0200"]),
        ("2026-10-24 00:00", "2026-10-27 00:00", ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]),
    ],
)
def test_each_day_has_one_night_when_clocks_change(after: str, until: str, expected: list[str]) -> None:
    assert shown(due_times(HALF_PAST_TWO, at(after), at(until), BERLIN)) == expected
