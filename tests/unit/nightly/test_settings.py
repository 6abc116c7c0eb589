"""How a nightly is installed: its settings and secrets, the lines for systemd and cron, and when it is due."""

import re
import stat
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from pydantic import ValidationError

from rigctl.base.errors import InputError
from rigctl.nightly import settings
from rigctl.nightly.install import cron_line, service, variables_to_pass
from rigctl.nightly.schedule import due_times, latest_due, next_due
from rigctl.store.address import passwords_in

GIVEN: dict[str, Any] = {"scenario": "/lab/s.yaml", "rig": "gigablox", "at": "02:30", "store": "/data/rigctl.db"}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_what_is_written_is_read_again_and_is_nobody_elses() -> None:
    given = settings.NightlySettings(
        **GIVEN, wait="45m", notify="mail -s rigctl anna", headers={"X-Lab": "ü: 1"}, confirm=False
    )
    assert stat.S_IMODE(settings.save("lab", given).stat().st_mode) == 0o600
    assert (settings.load_settings("lab"), settings.names()) == (given, ["lab"])
    assert (given.at, given.wait) == (time(2, 30), 2700.0)


@from_file
def test_a_mistake_has_its_place(text: str, expected: str) -> None:
    settings.file_of("lab").parent.mkdir(parents=True)
    settings.file_of("lab").write_text(f"scenario: s\nrig: lab\n{text}\nstore: /x.db\n")
    with pytest.raises(InputError, match=re.escape(expected)):
        settings.load_settings("lab")


@pytest.mark.parametrize("name", ["other", "../lab", "", "a/b"])
def test_one_that_is_not_there_names_those_that_are(name: str) -> None:
    settings.save("lab", settings.NightlySettings(**GIVEN))
    with pytest.raises(InputError, match=r"no nightly .*Installed: lab"):
        settings.load_settings(name)


def secrets(folder: Path, text: str, mode: int = 0o600) -> Path:
    (folder / "secrets").write_text(text)
    (folder / "secrets").chmod(mode)
    return folder / "secrets"


def test_a_secret_comes_from_the_environment_first_then_from_the_file(tmp_path: Path) -> None:
    file = secrets(tmp_path, "# ours\nTOKEN='from file'\nexport OTHER=b=c\n\n")
    assert settings.secrets_of(file, {}) == {"TOKEN": "from file", "OTHER": "b=c"}
    known = settings.secrets_of(file, {"TOKEN": "from environment"})
    assert settings.fill_in("Bearer ${TOKEN} $x ${OTHER}", known) == "Bearer from environment $x b=c"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    expected = rf"others may read it \(mode {mode:04o}\), so it is not used\. chmod 600"
    with pytest.raises(InputError, match=expected) as refused:
        settings.secrets_of(secrets(tmp_path, "TOKEN=hidden", mode), {})
    assert "hidden" not in str(refused.value)


def test_a_line_that_is_none_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{tmp_path}/secrets:2: expected NAME=VALUE$"):
        settings.secrets_of(secrets(tmp_path, "A=1\nhidden\n"), {})


@from_file
def test_an_address_with_a_password_is_not_kept(address: str, is_open: bool) -> None:
    assert (settings.open_secret(address) is not None) == is_open


@from_file
def test_a_store_with_a_password_is_not_kept(address: str, named: str) -> None:
    with pytest.raises(ValidationError) as refused:
        settings.NightlySettings(**GIVEN | {"store": address})
    said = str(refused.value.errors()[0]["ctx"]["error"])
    assert said.startswith("store: ")
    assert named in said
    assert "hush" not in said
    assert "\n" not in said
    settings.file_of("lab").parent.mkdir(parents=True)
    settings.file_of("lab").write_text(f"scenario: s\nrig: lab\nat: 02:30\nstore: {address}\n")
    with pytest.raises(InputError) as unread:
        settings.load_settings("lab")
    assert "hush" not in str(unread.value)


SECRET = "my@w/o:r%dü ?"


@from_file
def test_a_store_is_kept_and_its_secrets_filled_in(address: str, filled: str, tmp_path: Path) -> None:
    file = secrets(tmp_path, f"PW='{SECRET}'\nHOST=db.example.org\n")
    given = settings.NightlySettings(**GIVEN | {"store": address}, secrets=str(file))
    settings.save("lab", given)
    assert settings.store_address(settings.load_settings("lab"), {}) == filled
    assert all(value in (filled, SECRET) for _, value in passwords_in(filled))


def test_a_store_whose_secret_is_missing_is_named_without_any_value() -> None:
    given = settings.NightlySettings(**GIVEN | {"store": "postgresql://rig:${PW}@${HOST}/x"})
    with pytest.raises(InputError, match=r"^the secret HOST is neither in") as missing:
        settings.store_address(given, {"PW": "hush"})
    assert "hush" not in str(missing.value)


ODD = ["/opt/my tools/py%thon", "-m", "rigctl", 'a"b\\c', "$HOME", "50%", "a'b"]


def test_a_service_names_its_program_lets_news_be_no_failure_and_keeps_odd_words() -> None:
    plain = service("lab", ["/usr/bin/python3", "-m", "rigctl", "nightly", "run", "lab"], {}).splitlines()
    wanted = {"ExecStart=/usr/bin/python3 -m rigctl nightly run lab", "Type=oneshot", "SuccessExitStatus=1"}
    assert wanted <= set(plain)
    odd = service("lab", ODD, {"XDG_STATE_HOME": "/home/a b/100%"}).splitlines()
    start = r"""ExecStart="/opt/my tools/py%%thon" -m rigctl "a\"b\\c" "$$HOME" 50%% "a'b" """.strip()
    assert {start, 'Environment="XDG_STATE_HOME=/home/a b/100%%"'} <= set(odd)


def test_a_line_for_cron_is_quoted_for_the_shell_and_for_cron() -> None:
    line = cron_line(time(2, 5), ODD, {"XDG_STATE_HOME": "/a b"})
    assert line.startswith("5 2 * * * XDG_STATE_HOME='/a b' '/opt/my tools/py\\%thon' -m rigctl ")
    assert line.endswith(r""" 'a"b\c' '$HOME' 50\% 'a'"'"'b'""")


def test_only_what_finds_its_files_is_passed_on_and_as_absolute_paths() -> None:
    found = variables_to_pass({"XDG_CONFIG_HOME": "/c", "SECRET": "x", "PYTHONPATH": "/a:/b", "XDG_DATA_HOME": ""})
    assert found == {"XDG_CONFIG_HOME": "/c", "PYTHONPATH": "/a:/b"}


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85"])
def test_a_control_character_would_make_another_line_and_is_refused(character: str) -> None:
    with pytest.raises(InputError, match=r"^XDG_CONFIG_HOME='/a.*control character"):
        variables_to_pass({"XDG_CONFIG_HOME": f"/a{character}* * * * * reboot"})


HALF_PAST_TWO = time(2, 30)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_night_is_due_at_its_instant_and_not_before() -> None:
    due = at("2026-11-20 02:30:00")
    assert latest_due(HALF_PAST_TWO, due) == due
    assert latest_due(HALF_PAST_TWO, due - 1) == due - 86400
    assert next_due(HALF_PAST_TWO, due - 1) == due
    assert next_due(HALF_PAST_TWO, due) == due + 86400


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        ("2026-03-28 00:00", "2026-03-31 00:00", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        ("2026-10-24 00:00", "2026-10-27 00:00", ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]),
    ],
)
def test_each_day_has_one_night_when_clocks_change(after: str, until: str, expected: list[str]) -> None:
    due = [datetime.fromtimestamp(due_s).astimezone() for due_s in due_times(HALF_PAST_TWO, at(after), at(until))]
    assert [f"{night:%m-%d %H:%M%z}" for night in due] == expected
