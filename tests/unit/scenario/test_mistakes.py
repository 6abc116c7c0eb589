"""Every kind of mistake names file, line and column, shows the line, says what was expected; all are told at once."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cases import from_file, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import message_of as message
from planning import planned
from work import calls_of

from rigctl.base.errors import InputError
from rigctl.scenario.load import Overrides, load_plan
from rigctl.scenario.overrides import FIELDS
from rigctl.settings import SETTINGS
from rigctl.yamlfile import document

GOOD = """\
title: Test
rig: gigablox
pairs:
  - pi1 -> pi2
matrix:
  window: [64K, 200K]
duration: 10s
"""


@from_file
def test_one_mistake_is_told_at_its_place(tmp_path: Path, line: str, instead: str, expected: str) -> None:
    assert line in GOOD
    told = message(tmp_path, GOOD.replace(line, instead))
    assert told.startswith(expected), told
    assert told.count("t.yaml") == 1 or "no such file" in told, told


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (line, instead)
        for line, instead, _ in rows_of(test_one_mistake_is_told_at_its_place)
        if line.partition(":")[0] not in ("title", "rig", "pairs") and "repeat" not in instead
    ],
)
def test_a_mistake_in_a_part_is_told_in_the_words_of_a_scenario_of_its_own(
    tmp_path: Path, line: str, instead: str
) -> None:
    head, _, rest = GOOD.replace(line, instead).partition("pairs:")
    own = f"pairs:{rest}"
    nested = "".join(f"    {each}" for each in own.splitlines(keepends=True))
    alone, inside = (message(tmp_path, text) for text in (f"{head}{own}", f"{head}parts:\n  a:\n{nested}"))
    moved = re.sub(r"\bline (\d+)", lambda match: f"line {int(match[1]) + 2}", alone)
    moved = re.sub(r"t\.yaml:(\d+):(\d+)", lambda m: f"t.yaml:{int(m[1]) + 2}:{int(m[2]) + 4}", moved)
    assert sentences(inside) == sentences(moved)


def sentences(told: str) -> list[str]:
    """Return the lines of a message without those that show the file."""
    return [line for line in told.splitlines() if not re.match(r" *\d* \| ", line)]


def test_all_mistakes_of_single_keys_are_told_at_once_then_all_between_them(tmp_path: Path) -> None:
    condition = "conditions: {a: {congestion: reno, sysctl: {net.ipv4.tcp_congestion_control: bbr}}}\n"
    between = f"rig: gigablox\npairs: [pi1 -> pi1, pi1 -> pi7]\nomit: 10s\n{condition}"
    single = "titel: x\nmatrix: {mss: [1, 1460], parallel: []}\nduration: 3q\nrepeat: -1\n"
    for text, places in ((between + single, "5:1 6:16 6:36 7:11 8:9"), (between, "2:9 2:21 3:7 4:45")):
        assert " ".join(re.findall(r"^t\.yaml:(\S+): ", message(tmp_path, text), re.MULTILINE)) == places


def test_mistakes_of_the_rig_file_are_told_where_the_keys_of_the_scenario_are_right(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("virtual: loopback\nlinks: {rate: 1Q}\nnodes: {pi1: , pi2: }\n")
    assert message(tmp_path, GOOD.replace("gigablox", "r.yaml")).startswith('r.yaml:2:15: rate "1Q": unknown unit "Q".')


def test_a_matrix_of_more_than_100000_cells_is_refused_by_counting(tmp_path: Path) -> None:
    values = ", ".join(str(n) for n in range(1024, 4024))
    text = GOOD.replace("[64K, 200K]", f"[{values}]\n  mss: [{values}]\n  parallel: 1..128")
    assert message(tmp_path, text).startswith("t.yaml:5:1: the matrix has 1,152,000,000 tests (at most 100,000).")


def test_very_many_mistakes_are_cut_short(tmp_path: Path) -> None:
    told = message(tmp_path, GOOD.replace("[64K, 200K]", "[" + "x, " * 2000 + "64K]"))
    assert told.endswith("… and 950 more mistakes.")


@pytest.mark.parametrize(
    "mistakes",
    [
        lambda count: "matrix:\n  window:\n" + "  - xq\n" * count,
        lambda count: "".join(f"key{number}: 1\n" for number in range(count)),
        lambda count: "repeat: 1\n" * count,
        lambda count: "exclude:\n" + "- {mss: 100}\n" * count,
    ],
    ids=["values", "keys", "twice", "rows"],
)
def test_twice_the_mistakes_take_twice_the_work(
    tmp_path: Path, mistakes: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    excerpt = Mock(wraps=document.excerpt)
    monkeypatch.setattr(document, "excerpt", excerpt)

    def work(count: int) -> int:
        text = f"rig: gigablox\npairs: [pi1 -> pi2]\n{mistakes(count)}"
        return calls_of(lambda: message(tmp_path, text))

    assert work(3000) < 2.2 * work(1500)
    assert excerpt.call_count == 2 * document.MOST_SHOWN  # each splits the whole text


@from_file
def test_a_mistake_in_an_option_names_it(tmp_path: Path, option: dict[str, Any] | str, expected: str) -> None:
    overrides = Overrides(sets=(option,)) if isinstance(option, str) else Overrides(**option)
    assert message(tmp_path, f"{GOOD}omit: 5s\n", overrides).startswith(expected)


KEYS = ["title", "rig", "pairs", "matrix", "exclude", "include", "duration", "omit", "repeat", "x"]
VALUES = ["gigablox", "64K", "pi1 -> pi2", "1", "-1", "null", "true", "window", "'\\t'", "9" * 40]
SETS = ["window=1K", "mss=9", "pairs=pi1->pi2", "omit=1s", "a=b", "nodelay=true,false"]


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    key = st.sampled_from(["window", "mss", "nodelay", "y"])
    mapping = st.builds("{{{}: {}}}".format, key, inner)
    return st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]") | mapping


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.recursive(st.sampled_from(VALUES), nested, max_leaves=6)), max_size=8),
    st.lists(st.sampled_from(SETS), max_size=2),
)
def test_any_scenario_is_a_plan_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str]], sets: list[str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "t.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in entries))
    try:
        plan, _ = load_plan(str(path), Overrides(sets=tuple(sets)))
    except InputError as error:
        assert str(error)
    else:
        assert plan.cells


@pytest.mark.parametrize(("key", "text"), [("title", "50"), ("title", "1.10"), ("title", "true"), ("notes", "5")])
def test_titles_and_notes_are_texts_as_written(tmp_path: Path, key: str, text: str) -> None:
    assert getattr(planned(tmp_path, f"{key}: {text}"), key) == text


def test_an_unknown_name_of_an_option_lists_every_known_one(tmp_path: Path) -> None:
    said = message(tmp_path, GOOD, Overrides(sets=("zzzz=1",)))
    assert '--set zzzz=1: unknown name "zzzz". Known: condition, window,' in said
    assert "…" not in said
    assert all(f" {name}" in said for name in (*SETTINGS, *FIELDS))


def test_a_kind_of_clash_is_told_once_with_the_first_test_it_is_in(tmp_path: Path) -> None:
    told = message(tmp_path, GOOD.replace("[64K, 200K]", "64K\n  mss: [1000, 1400]\n  window_total: [64K, 128K]"))
    assert told.count("window is set too") == told.count("(test 1).") == 1


def test_more_pairs_than_a_test_can_have_are_refused_where_they_become_too_many(tmp_path: Path) -> None:
    (tmp_path / "many.yaml").write_text('virtual: namespaces\nnodes: {"n[001..999]": {}}\n')
    text = 'rig: many.yaml\npairs: ["n[001..%s] x n[500..999]"]\n'
    assert "stands for 1,500 pairs, at most 1,000." in message(tmp_path, text % "003")
    several = 'rig: many.yaml\npairs: ["n[001..002] x n[500..999]", n003 -> n004, n005 -> n006]\n'
    assert "t.yaml:2:38: pairs: more than 1,000 with this one. Name fewer." in message(tmp_path, several)
