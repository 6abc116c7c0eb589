import stat
from datetime import time
from pathlib import Path
from typing import Any

import pytest

from rigctl.base.errors import InputError
from rigctl.nightly.settings import Settings, file_of, filled_in, load, names, open_secret, save, secrets_of

GIVEN: dict[str, Any] = {"scenario": "/lab/s.yaml", "rig": "gigablox", "at": "02:30", "store": "/data/rigctl.db"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_what_is_written_is_read_again_and_is_nobody_elses() -> None:
    settings = Settings(**GIVEN, wait="45m", notify="mail -s rigctl anna", headers={"X-Lab": "ü: 1"}, confirm=False)
    assert stat.S_IMODE(save("lab", settings).stat().st_mode) == 0o600
    assert load("lab") == settings
    assert (load("lab").at, load("lab").wait) == (time(2, 30), 2700.0)
    assert names() == ["lab"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at: 2:3", '3:5: at "2:3": expected a time of day, as 02:30'),
        ("at: 02:30\nwait: soon", '4:7: wait "soon"'),
        ("at: 02:30\ndeadline: 30h", '4:11: deadline "30h": at most 20h'),
        ("at: 02:30\nnotfy: x", '4:1: unknown key "notfy". Did you mean "notify"?'),
        ("at: 02:30\nconfirm: maybe", '4:10: confirm "maybe": expected true or false'),
        ("at: 02:30\nnotify: https://anna:pw@x.org/", "4:9: notify: holds a password"),
        ("at: 02:30\nnotify_format: html", '4:16: notify_format "html": expected json or markdown'),
        ("wait: 1m", '"at" is missing. Expected: local time, as 02:30.'),
    ],
)
def test_a_mistake_has_its_place(text: str, expected: str) -> None:
    file_of("lab").parent.mkdir(parents=True)
    file_of("lab").write_text(f"scenario: s\nrig: lab\n{text}\nstore: /x.db\n")
    with pytest.raises(InputError) as caught:
        load("lab")
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["other", "../lab", "", "a/b"])
def test_one_that_is_not_there_names_those_that_are(name: str) -> None:
    save("lab", Settings(**GIVEN))
    with pytest.raises(InputError, match=r"no nightly .*Installed: lab"):
        load(name)


def secrets(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "secrets"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_secret_comes_from_the_environment_first_then_from_the_file(tmp_path: Path) -> None:
    file = secrets(tmp_path, "# ours\nTOKEN='from file'\nexport OTHER=b=c\n\n")
    assert secrets_of(file, {}) == {"TOKEN": "from file", "OTHER": "b=c"}
    known = secrets_of(file, {"TOKEN": "from environment"})
    assert filled_in("Bearer ${TOKEN} $x ${OTHER}", known) == "Bearer from environment $x b=c"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    expected = rf"others may read it \(mode {mode:04o}\), so it is not used\. chmod 600"
    with pytest.raises(InputError, match=expected) as refused:
        secrets_of(secrets(tmp_path, "TOKEN=hidden", mode), {})
    assert "hidden" not in str(refused.value)


def test_a_line_that_is_none_is_not_shown(tmp_path: Path) -> None:
    file = secrets(tmp_path, "A=1\nhidden\n")
    with pytest.raises(InputError) as caught:
        secrets_of(file, {})
    assert str(caught.value) == f"{file}:2: expected NAME=VALUE"


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("https://chat.example.org/hook", False),
        ("https://anna:pw@chat.example.org/", True),
        ("https://anna:${PW}@chat.example.org/", False),
        ("postgresql+psycopg://rig:pw@db/rigctl", True),
        ("postgresql+psycopg://rig@db/rigctl", False),
        ("https://[::1/", True),
    ],
)
def test_an_address_with_a_password_is_not_kept(address: str, is_open: bool) -> None:
    assert (open_secret(address) is not None) == is_open
