import os
import re
from pathlib import Path

import pytest
import yaml
from cases import from_file
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.base.errors import InputError
from rigctl.yamlfile import MistakesError
from rigctl.yamlfile.read import MAX_BYTES, find_file, parse_document, read_document


def refused(text: str) -> str:
    with pytest.raises(MistakesError) as caught:
        parse_document("f.yaml", text)
    return str(caught.value)


def test_values_are_plain_data_and_keep_their_places() -> None:
    document = parse_document("f.yaml", "a: [1, x, 1.5, true, ~]\nb:\n  c: '2'\n")
    assert document.data == {"a": [1, "x", 1.5, True, None], "b": {"c": "2"}}
    assert str(document.mistake(("b", "c"), "wrong.")) == "f.yaml:3:6: wrong.\n   3 |   c: '2'\n     |      ^^^"


@pytest.mark.parametrize("text", ["yes", "0123", "12:30", "2026-01-01", "1e3", "0x10", "1_000", "9" * 30, "pi1 -> pi2"])
def test_what_only_looks_like_a_number_or_date_stays_a_text(text: str) -> None:
    assert parse_document("f.yaml", f"a: {text}").data == {"a": text}


@pytest.mark.parametrize(
    ("text", "place", "called"),
    [
        ("rig:\u00a0a\n", "1:5", "U+00A0 (no-break space)"),
        ("rig\uff1aa\npairs: [a -> b]\n", "1:4", "U+FF1A (full-width colon)"),
        ("\u00a0rig: a\nb: c\n", "1:1", "U+00A0 (no-break space)"),
        ("a: 1\n\u00a0\u00a0b: 2\n", "2:1", "U+00A0 (no-break space)"),
        ("matrix: {window\uff1a [64K]}\n", "1:16", "U+FF1A (full-width colon)"),
        ("nodes:\n  pi1\uff1a {address: x}\n  pi2: {address: y}\n", "2:6", "U+FF1A (full-width colon)"),
        ("a:\u30001\nb: 2\n", "1:3", "U+3000 (ideographic space)"),
        ("title: 24\u00a0V\nrig:\u202fa\nb: 1\n", "2:5", "U+202F (narrow no-break space)"),
    ],
)
def test_a_sign_that_looks_like_yamls_is_named_at_its_place(text: str, place: str, called: str) -> None:
    assert refused(text).startswith(f"f.yaml:{place}: character {called} stands here")


def test_such_signs_are_allowed_in_texts_and_comments_and_spaces_separate_words() -> None:
    lines = (
        "# \u00a0 \uff1a",
        "title: 24\u00a0V \uff1a x",
        "quoted: '\u00a0\uff1a'",
        "pairs: a\u00a0-> b",
        '"k\u00a0": 1',
        "n: \u00a02",
    )
    read = parse_document("f.yaml", "\n".join(lines)).data
    assert read == {"title": "24\u00a0V \uff1a x", "quoted": "\u00a0\uff1a", "pairs": "a -> b", "k\u00a0": 1, "n": 2}


def test_without_libyaml_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: [1, 'ä', 1.5]\nb: {c: &x [交換, y], d: *x}\n"
    fast = parse_document("f.yaml", text)
    monkeypatch.setattr("rigctl.yamlfile.read._Composer", yaml.BaseLoader)
    assert parse_document("f.yaml", text) == fast
    assert refused("a: [1, 2\nb: 3\n").startswith("f.yaml:2:2: not valid YAML")


def test_a_mistake_points_at_the_nearest_place_above_or_names_the_option_it_came_from() -> None:
    document = parse_document("f.yaml", "a:\n  - {b: 1}\n")
    assert document.mistake(("a", 0, "zzz"), "x").where == "f.yaml:2:5"
    assert document.mistake(("a", 7), "x").where == "f.yaml:2:3"
    document = parse_document("f.yaml", "a: [1, 2]\nb: 3\n").replaced(("a",), [9], "--set a=9")
    assert str(document.mistake(("a", 0), "wrong.")) == "--set a=9: wrong."
    assert document.mistake(("b",), "wrong.").where == "f.yaml:2:4"


def test_a_key_twice_names_both_lines_and_the_rest_is_still_read() -> None:
    document = parse_document("f.yaml", "a: 1\nb: 2\na: 3\nb: 4\n")
    assert [mistake.where for mistake in document.mistakes] == ["f.yaml:3:1", "f.yaml:4:1"]
    assert 'key "a" is given twice, first in line 1.' in str(document.mistakes[0])
    assert document.data == {"a": 1, "b": 2}


@from_file
def test_unreadable_text_is_refused_at_its_place(text: str, where: str, what: str) -> None:
    message = refused(text)
    assert message.startswith(f"{where}: "), message
    assert what in message


def test_an_escaped_control_character_is_refused_too() -> None:
    (mistake,) = parse_document("f.yaml", 'a: "x\\0y"\n').mistakes
    assert "U+0000 is not allowed" in str(mistake)


def test_aliases_within_bounds_are_followed() -> None:
    assert parse_document("f.yaml", "a: &x {k: 1}\nb: [*x, *x]\n").data["b"] == [{"k": 1}, {"k": 1}]


def aliases(count: int, times: int) -> str:
    """Lists each of which has `times` aliases of the one before."""
    lists = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]" for n in range(1, count))
    return "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *lists])


def test_too_many_values_and_a_bomb_or_a_chain_of_aliases_are_refused() -> None:
    assert "too many values" in refused("a: [" + "1," * 60_000 + "]")
    assert "too many values" in refused(aliases(10, 10))
    assert "too deep" in refused(aliases(40, 1))


@pytest.mark.parametrize("opening", ["[", "- ", "? ", "{a: "])
def test_a_hundred_thousand_levels_overflow_no_stack(opening: str) -> None:
    assert refused("a:\n  " + opening * 100_000) == "f.yaml: nested too deep: at most 20 levels."


def test_the_excerpt_is_cut_around_the_place_and_its_caret_stands_below_it() -> None:
    document = parse_document("f.yaml", "a: [交換機, wrong]\n")
    line, caret = str(document.mistake(("a", 1), "x")).splitlines()[1:]
    assert line == "   1 | a: [交換機, wrong]"
    assert caret == "     | " + " " * 12 + "^^^^^"
    document = parse_document("f.yaml", "a: [" + "abcdefgh, " * 1000 + "wrong]\n")
    line, caret = str(document.mistake(("a", 1000), "x")).splitlines()[1:]
    assert len(line) < 120
    assert line[caret.index("^") :].startswith("wrong")


@pytest.mark.parametrize("value", ["hunter2", '"hun ter2"', "'hunter2'"])
def test_a_password_is_never_shown_whatever_the_mistake_beside_it(value: str) -> None:
    shown = str(parse_document("f.yaml", f"n: {{password: {value}, port: x}}\n").mistake(("n", "port"), "wrong."))
    assert "ter2" not in shown
    assert shown.splitlines()[2].index("^") == shown.splitlines()[1].index("x}")


@pytest.mark.parametrize("url", ["postgresql://u:hush@h@db/x", "postgresql://u@db/x?password=hush", "https://h/hush"])
def test_a_line_is_shown_without_the_secret_of_its_url(url: str) -> None:
    shown = str(parse_document("f.yaml", f"url: {url}\n").mistake(("url",), "wrong."))
    assert "hush" not in shown
    assert url.partition("://")[0] in shown


@pytest.mark.parametrize("content", [b"a: 1\n#".ljust(MAX_BYTES, b"x"), b"\xef\xbb\xbfa: 1\n"], ids=["bound", "BOM"])
def test_a_file_of_just_the_bound_is_read_and_a_byte_order_mark_taken_off(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.yaml").write_bytes(content)
    assert read_document(tmp_path / "f.yaml").data == {"a": 1}


def test_bytes_that_are_not_utf8_are_shown_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: ä\n".encode("latin-1"))
    with pytest.raises(MistakesError, match=rf"^{re.escape(str(path))}:2:4: byte 0xE4 is not UTF-8\."):
        read_document(path)


@from_file
def test_what_is_no_file_of_a_usual_size_is_refused_without_waiting(tmp_path: Path, name: str, said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 100_000_000)
    with pytest.raises(MistakesError, match=said):
        read_document(tmp_path / name)


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    for name in ("gigablox", "das2"):
        (tmp_path / f"{name}.yaml").write_text("a: 1\n")
    return tmp_path


def test_a_bare_name_is_a_bundled_one_even_beside_a_folder(bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundled)
    assert find_file("das2", what="scenario", bundled=bundled) == bundled / "das2.yaml"
    (bundled / "das2").mkdir()
    assert find_file("das2", what="scenario", bundled=bundled) == bundled / "das2.yaml"


def test_a_path_is_relative_to_the_file_that_names_it(bundled: Path) -> None:
    assert find_file("das2.yaml", what="rig", bundled=Path("/no"), relative_to=bundled) == bundled / "das2.yaml"


@from_file
def test_an_unknown_reference_suggests_what_is_there(bundled: Path, reference: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        find_file(reference.format(bundled), what="scenario", bundled=bundled)


@pytest.mark.parametrize("reference", ["", " ", "a\0b", "x" * 5000 + ".yaml", "~nobody-here/x.yaml", "/" * 300])
def test_odd_references_are_input_errors(bundled: Path, reference: str) -> None:
    with pytest.raises(InputError) as caught:
        read_document(find_file(reference, what="rig", bundled=bundled))
    assert "\0" not in str(caught.value)


TEXTS = st.text(max_size=300) | st.text(alphabet="ab:-[]{}&*!|>'\"#%@,? \n\t~0<\\x", max_size=200)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300) | TEXTS.map(str.encode))
def test_any_bytes_are_a_document_or_an_input_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "f.yaml"
    path.write_bytes(data)
    try:
        assert isinstance(read_document(path).data, dict)
    except InputError as error:
        assert str(error).startswith(str(path))
