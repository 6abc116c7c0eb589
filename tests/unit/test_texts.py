"""Texts of others, made harmless."""

import math

import pytest

from rigctl.base.texts import file_name, harmless, printable, printable_lines


def test_what_could_move_a_cursor_is_a_question_mark() -> None:
    assert printable("a\x1b[2Jb\x9bc\u202ed\te\nf") == "a?[2Jb?c?d e?f"
    assert printable("Größe 10 µs → ok") == "Größe 10 µs → ok"
    assert printable_lines("one\r\ntwo\x1b\nthree") == "one\ntwo?\nthree"


def test_a_record_keeps_what_it_may_hold() -> None:
    plain = {"a": 1, "b": [1.5, None, True, "x"], "c": {"d": "e"}}
    assert harmless(plain) == plain


def test_a_record_loses_what_nothing_can_store_or_show() -> None:
    wrong = {"\x1b": "\x1b", "big": 10**5000, "inf": math.inf, "nan": math.nan, "odd": object(), "long": "x" * 10**5}
    assert harmless(wrong) == {"?": "?", "big": None, "inf": None, "nan": None, "odd": None, "long": "x" * 4096}


def test_a_record_keeps_the_least_and_the_highest_number_of_64_bits() -> None:
    kept = {"least": -(2**63), "highest": 2**63 - 1}
    assert harmless(kept | {"below": -(2**63) - 1, "above": 2**63}) == kept | {"below": None, "above": None}


def test_a_record_is_only_so_deep() -> None:
    nested: dict[str, object] = {}
    for _ in range(10_000):
        nested = {"a": nested}
    assert len(str(harmless(nested))) < 100


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gigablox", "gigablox"),
        ("two words", "two-words"),
        ("../../etc/cron.d/x", "etc-cron.d-x"),
        ("/etc/passwd", "etc-passwd"),
        (".hidden", "hidden"),
        ("--output", "output"),
        ("a\x00b\nc", "a-b-c"),
        ("..", "run"),
        ("", "run"),
        ("Größe", "Größe"),
    ],
)
def test_a_name_of_others_is_one_file_here(text: str, name: str) -> None:
    assert file_name(text) == name


def test_a_name_of_a_file_is_short_enough() -> None:
    assert len(file_name("ü" * 1000).encode()) <= 80
