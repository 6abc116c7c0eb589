from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest

from rigctl.base.errors import InputError
from rigctl.nightly.install import cron_line, passed_on, service
from rigctl.nightly.schedule import due_times, latest_due, next_due

ODD = ["/opt/my tools/py%thon", "-m", "rigctl", 'a"b\\c', "$HOME", "50%", "a'b"]


def test_a_service_names_its_program_lets_news_be_no_failure_and_keeps_odd_words() -> None:
    lines = service("lab", ["/usr/bin/python3", "-m", "rigctl", "nightly", "run", "lab"], {}).splitlines()
    assert "ExecStart=/usr/bin/python3 -m rigctl nightly run lab" in lines
    assert "Type=oneshot" in lines
    assert "SuccessExitStatus=1" in lines
    lines = service("lab", ODD, {"XDG_STATE_HOME": "/home/a b/100%"}).splitlines()
    assert r"""ExecStart="/opt/my tools/py%%thon" -m rigctl "a\"b\\c" "$$HOME" 50%% "a'b" """.strip() in lines
    assert 'Environment="XDG_STATE_HOME=/home/a b/100%%"' in lines


def test_a_line_for_cron_is_quoted_for_the_shell_and_for_cron() -> None:
    line = cron_line(time(2, 5), ODD, {"XDG_STATE_HOME": "/a b"})
    assert line.startswith("5 2 * * * XDG_STATE_HOME='/a b' '/opt/my tools/py\\%thon' -m rigctl ")
    assert line.endswith(r""" 'a"b\c' '$HOME' 50\% 'a'"'"'b'""")


def test_only_what_finds_its_files_is_passed_on_and_as_absolute_paths() -> None:
    found = passed_on({"XDG_CONFIG_HOME": "/c", "SECRET": "x", "PYTHONPATH": "/a:/b", "XDG_DATA_HOME": ""})
    assert found == {"XDG_CONFIG_HOME": "/c", "PYTHONPATH": "/a:/b"}


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85"])
def test_a_control_character_would_make_another_line_and_is_refused(character: str) -> None:
    with pytest.raises(InputError, match=r"^XDG_CONFIG_HOME='/a.*control character"):
        passed_on({"XDG_CONFIG_HOME": f"/a{character}* * * * * reboot"})


BERLIN = ZoneInfo("Europe/Berlin")
HALF_PAST_TWO = time(2, 30)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


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
    due = [datetime.fromtimestamp(due_s, BERLIN) for due_s in due_times(HALF_PAST_TWO, at(after), at(until), BERLIN)]
    assert [f"{night:%m-%d %H:%M%z}" for night in due] == expected
