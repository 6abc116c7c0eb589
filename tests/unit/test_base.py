import asyncio
import fcntl
import json
import logging
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import turns

from rigctl.base import units
from rigctl.base.errors import InputError
from rigctl.base.files import write_whole
from rigctl.base.logs import JsonLines, TextLines, about, learn
from rigctl.base.texts import file_name, harmless, printable, printable_lines
from rigctl.base.units import UnitError, parse_bytes, parse_duration, parse_rate
from rigctl.base.urls import hide_secrets


def test_what_could_move_a_cursor_is_a_question_mark() -> None:
    assert printable("a\x1b[2Jb\x9bc\u202ed\te\nf") == "a?[2Jb?c?d e?f"
    assert printable("Größe 10 µs → ok") == "Größe 10 µs → ok"
    assert printable_lines("one\r\ntwo\x1b\nthree") == "one\ntwo?\nthree"


def test_a_record_keeps_what_it_may_hold_and_loses_what_nothing_can_store_or_show() -> None:
    kept = {"a": [1.5, None, True, "x"], "c": {"d": "e"}, "least": -(2**63), "highest": 2**63 - 1}
    lost = {"below": -(2**63) - 1, "above": 2**63, "inf": math.inf, "nan": math.nan, "odd": object()}
    cut = {"\x1b": "\x1b", "long": "x" * 10**5}
    assert harmless(kept | lost | cut) == kept | dict.fromkeys(lost) | {"?": "?", "long": "x" * 4096}
    nested: dict[str, object] = {}
    for _ in range(10_000):
        nested = {"a": nested}
    assert len(str(harmless(nested))) < 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://anna:my@word@db/rigctl", "postgresql://anna:***@db/rigctl"),
        ("postgresql://anna:a:b/c?d#e%@f@@db:5432/x?sslmode=require", "postgresql://anna:***@db:5432/x?***"),
        ("postgresql://anna@[::1]:5432/x", "postgresql://anna@[::1]:5432/x"),
        ("postgresql://anna@db/x?PassWord=hush", "postgresql://anna@db/x?***"),
        ("https://hooks.example.org/services/T1/hush", "https://hooks.example.org/***"),
        ("curl -d @- 'HTTP://h/a?token=hush' -o /tmp/x", "curl -d @- 'HTTP://h/***' -o /tmp/x"),
        ("mail -s rigctl anna@example.org", "mail -s rigctl anna@example.org"),
        ("/home/anna:x@y/runs.db", "/home/anna:x@y/runs.db"),
    ],
)
def test_secrets_of_urls_are_hidden_in_any_text(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    dotted = hide_secrets(text, hide=lambda secret: "•" * len(secret))
    assert len(dotted) == len(text)
    assert "hush" not in dotted


def test_a_name_of_others_is_one_file_here() -> None:
    names = {"../../etc/cron.d/x": "etc-cron.d-x", ".hidden": "hidden", "--output": "output", "a\x00b\nc": "a-b-c"}
    names |= {"..": "run", "": "run", "Größe": "Größe", "ü" * 1000: "ü" * 40}
    assert {text: file_name(text) for text in names} == names


def test_parts_of_writers_that_were_killed_are_removed_and_nothing_else(tmp_path: Path) -> None:
    killed, foreign, writing = ".page.html.0123abcd.part", ".mine.part", ".page.html.fedc4321.part"
    (tmp_path / "page.html").write_text("old")
    for name in (killed, foreign, writing):
        (tmp_path / name).touch()
    with (tmp_path / writing).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_whole(tmp_path / "page.html", b"page")
    assert {path.name for path in tmp_path.iterdir()} == {foreign, writing, "page.html"}
    assert (tmp_path / "page.html").read_bytes() == b"page"


def test_a_link_is_followed_and_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_whole(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"
    write_whole(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()


def test_a_link_of_another_user_is_not_followed_wherever_it_stands_in_a_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_text("old")
    (tmp_path / "others.csv").symlink_to("precious")
    (tmp_path / "own.csv").symlink_to("others.csv")
    if os.geteuid() == 0:
        os.chown(tmp_path / "others.csv", 65534, 65534, follow_symlinks=False)
    else:
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    for name in ("others.csv", "own.csv"):
        with pytest.raises(InputError, match=r"cannot be written: .*csv is a symbolic link of another user"):
            write_whole(tmp_path / name, b"new")
    write_whole(tmp_path / "others.csv", b"new", follow=False)
    assert (tmp_path / "precious").read_text() == "old"
    assert not (tmp_path / "others.csv").is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_comes_into_the_folder_that_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is replaced with a link between the opening and the name of the temporary file."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "page.html").write_text("old")
    (tmp_path / "open").mkdir()

    def replaced(_: int) -> str:
        (tmp_path / "open").rename(tmp_path / "moved")
        (tmp_path / "open").symlink_to("precious")
        return "01234567"

    monkeypatch.setattr("secrets.token_hex", replaced)
    write_whole(tmp_path / "open" / "page.html", b"new")
    found = {path.name: path.read_text() for path in (*tmp_path.glob("precious/*"), *tmp_path.glob("precious/.*"))}
    assert found == {"page.html": "old"}
    assert [path.read_text() for path in (tmp_path / "moved").iterdir()] == ["new"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/out.csv: cannot be written: No such file"):
        write_whole(tmp_path / "none" / "out.csv", b"")
    with pytest.raises(InputError, match=r"is a folder"):
        write_whole(tmp_path, b"")


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (parse_bytes, {"64K": 65536, "64k": 65536, "1KiB": 1024, "1.5M": 1572864, "0.5K": 512, 1460: 1460}),
        (parse_rate, {"1G": 10**9, "100M": 10**8, "8 Gbit/s": 8 * 10**9, "98kbit": 98000, "2.5G": 2.5e9}),
        (parse_duration, {"5s": 5, "500ms": 0.5, "30m": 1800, "1h": 3600, 10: 10, "0.5": 0.5}),
        (units.format_duration, {0.25: "250 ms", 12.5: "12.5 s", 420: "7m 00s", 3900: "1h 05m", 86400: "24h 00m"}),
        (
            units.digits_text,
            {0.0014: "0.0014", 12: "12", 999.6: "1000", 1234.0: "1234", 1.2e-6: "0.0000012"},
        ),
        (units.format_rate, {1e9: "1 Gbit/s", 2.5e6: "2.5 Mbit/s", 8e3: "8 kbit/s", 8: "8 bit/s"}),
    ],
)
def test_quantities_are_read_and_printed_with_their_units(function: Any, results: dict[Any, Any]) -> None:
    assert {given: function(given) for given in results} == results


@pytest.mark.parametrize("parse", [parse_bytes, parse_rate, parse_duration])
@pytest.mark.parametrize("text", ["", "K", "64Q", "-1", "1,5", "0x10", "1e3", "nan", "inf", "five", "1 2"])
def test_anything_else_is_a_unit_error(parse: type, text: str) -> None:
    with pytest.raises(UnitError):
        parse(text)


def test_a_wrong_unit_is_named_with_what_to_use_and_a_fraction_of_a_byte_is_refused() -> None:
    with pytest.raises(UnitError, match=r'window "64Q": unknown unit "Q". Use K or M, as in 64K'):
        parse_bytes("64Q", "window")
    with pytest.raises(UnitError, match="not a whole number of bytes"):
        parse_bytes("1.0001K")


@given(st.integers(0, 2**40))
def test_what_is_printed_reads_back_as_the_same_size(size: int) -> None:
    assert parse_bytes(units.format_bytes(size)) == size


@given(st.text(max_size=30))
def test_any_text_is_a_finite_time_or_a_unit_error(text: str) -> None:
    try:
        assert math.isfinite(parse_duration(text))
    except UnitError as error:
        assert str(error)


def line(message: str = "said", **own: Any) -> dict[str, Any]:
    record = logging.LogRecord("rigctl.x", logging.INFO, "x.py", 1, message, (), None)
    vars(record).update(own)
    parsed: dict[str, Any] = json.loads(JsonLines().format(record))
    return parsed


def subjects() -> tuple[Any, Any, Any]:
    made = line()
    return made["run"], made["cell"], made["node"]


def test_what_a_block_is_about_ends_with_it_and_a_line_outside_has_the_same_keys() -> None:
    learn(run="lost")
    assert list(line()) == ["time", "level", "logger", "message", "run", "cell", "node"]
    with about(run="r1"):
        with about(node="pi1"):
            learn(cell=3)
            assert subjects() == ("r1", 3, "pi1")
        assert subjects() == ("r1", None, None)
    assert subjects() == (None, None, None)


async def test_a_task_learns_what_its_block_learns_later() -> None:
    known = asyncio.Event()

    async def node(name: str) -> tuple[Any, Any, Any]:
        with about(node=name):
            await known.wait()
            return subjects()

    with about():
        tasks = [asyncio.create_task(node(name)) for name in ("pi1", "pi2")]
        await turns()
        learn(run="r1", cell=2)
        known.set()
        assert await asyncio.gather(*tasks) == [("r1", 2, "pi1"), ("r1", 2, "pi2")]


def test_a_line_has_what_is_its_own_and_one_for_people_moves_no_cursor_and_names_its_subjects() -> None:
    made = line("one\ntwo \x1b[2J \udc80", event="test ended", reason=ValueError("x"))
    assert (made["event"], made["reason"], made["message"]) == ("test ended", "x", "one\ntwo \x1b[2J ?")
    record = logging.LogRecord("rigctl.x", logging.INFO, "x.py", 1, "lost: %s", ("\x1b[2J",), None)
    with about(run="r1", node="pi1"):
        assert TextLines().format(record).endswith(" rigctl.x [run r1, node pi1]: lost: ?[2J")
