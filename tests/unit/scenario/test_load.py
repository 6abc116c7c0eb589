"""From a scenario and the options to the plan of a run."""

from pathlib import Path

import pytest

from rigctl import resources
from rigctl.errors import InputError
from rigctl.records import Cell, Direction, Link, Pair, TcpSettings, WindowSettings
from rigctl.scenario.load import Overrides, bundled_scenarios, load_plan

PAIRS = (Pair("pi1", "pi2"), Pair("pi3", "pi4"))
# The page's table: window [KB], MSS, parallel, in its order.
PAGE = [(64, 1460, 1), (64, 1460, 5), (64, 8960, 1), (200, 1460, 1), (64, 8960, 5), (200, 8960, 1), (200, 8960, 5)]


def rows(cells: tuple[Cell, ...]) -> list[tuple[int | None, int | None, int]]:
    return [(cell.window.bytes and cell.window.bytes // 1024, cell.tcp.mss, cell.parallel) for cell in cells]


def written(folder: Path, text: str) -> str:
    path = folder / "t.yaml"
    path.write_text(text)
    return str(path)


def test_gigablox_yields_the_seven_tests_of_the_page_in_its_order() -> None:
    plan, rig = load_plan("gigablox", Overrides())
    assert rows(plan.cells) == PAGE
    assert [cell.number for cell in plan.cells] == [1, 2, 3, 4, 5, 6, 7]
    assert {(cell.pairs, cell.duration_s, cell.omit_s, cell.test) for cell in plan.cells} == {(PAIRS, 60.0, 0.0, "tcp")}
    assert rig.virtual == plan.virtual == "namespaces"
    assert plan.links == dict.fromkeys(("pi1", "pi2", "pi3", "pi4"), Link(10**9, 1500))


def test_the_plan_keeps_both_texts_and_the_options_as_given() -> None:
    overrides = Overrides(rig="loopback", sets=("window=64K", "omit=1s"), duration="5s", repeat=3)
    plan, rig = load_plan("gigablox", overrides)
    assert plan.scenario_name == "gigablox"
    assert plan.scenario_yaml == (resources.scenarios() / "gigablox.yaml").read_text()
    assert plan.rig_name == rig.name == "loopback"
    assert plan.rig_yaml == (resources.scenarios() / "rigs" / "loopback.yaml").read_text()
    assert plan.overrides == ("--rig loopback", "--duration 5s", "--repeat 3", "--set window=64K", "--set omit=1s")
    assert plan.repeat == 3
    assert rows(plan.cells) == [(64, 1460, 1), (64, 1460, 5), (64, 8960, 1), (64, 8960, 5)]
    assert {(cell.duration_s, cell.omit_s) for cell in plan.cells} == {(5.0, 1.0)}


def test_fields_can_be_set() -> None:
    plan, _ = load_plan("gigablox", Overrides(sets=("title=A, b", "pairs=pi4->pi1", "repeat=2", "duration=100ms")))
    assert (plan.title, plan.repeat, plan.cells[0].duration_s) == ("A, b", 2, 0.1)
    assert plan.cells[0].pairs == (Pair("pi4", "pi1"),)
    assert set(plan.links) == {"pi1", "pi4"}


def test_every_setting_reaches_its_cell(tmp_path: Path) -> None:
    row = "{window: 1M, mss: 100, parallel: 3, congestion: bbr, nodelay: off, direction: both}"
    plan, _ = load_plan(written(tmp_path, f"rig: gigablox\npairs: pi1→pi2\nomit: 1.5\ninclude: [{row}]\n"), Overrides())
    (cell,) = plan.cells
    assert (cell.pairs, cell.omit_s, cell.parallel, cell.direction) == ((PAIRS[0],), 1.5, 3, Direction.BOTH)
    assert (cell.window, cell.tcp) == (WindowSettings(1048576), TcpSettings(100, "bbr", False))
    assert plan.title == plan.scenario_name == "t"


def test_the_least_scenario_is_one_cell_as_the_nodes_have_it(tmp_path: Path) -> None:
    plan, _ = load_plan(written(tmp_path, "rig: loopback\npairs: [pi1 -> pi2]\n"), Overrides())
    assert plan.cells == (Cell(1, "tcp", (PAIRS[0],), 10.0, 0.0, 1),)
    assert plan.repeat == 1


def test_a_rig_path_is_relative_to_the_scenario_but_that_of_the_option_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, title in ((tmp_path / "a", "beside"), (tmp_path / "b", "here")):
        folder.mkdir()
        (folder / "r.yaml").write_text(f"title: {title}\nvirtual: loopback\nnodes: {{pi1: , pi2: }}\n")
    scenario = written(tmp_path / "a", "rig: r.yaml\npairs: [pi1 -> pi2]\n")
    monkeypatch.chdir(tmp_path / "b")
    assert load_plan(scenario, Overrides())[1].title == "beside"
    assert load_plan(scenario, Overrides(rig="r.yaml"))[1].title == "here"


def test_a_rig_option_stands_in_for_a_rig_that_is_missing_or_not_there(tmp_path: Path) -> None:
    for line in ("", "rig: not-there\n"):
        assert (
            load_plan(written(tmp_path, f"{line}pairs: [pi1 -> pi2]\n"), Overrides(rig="loopback"))[1].name
            == "loopback"
        )


def test_an_unknown_scenario_lists_the_bundled_ones() -> None:
    with pytest.raises(InputError, match=r'unknown scenario "gigabox"\. Did you mean "gigablox"\? Bundled: .*gigablox'):
        load_plan("gigabox", Overrides())


@pytest.mark.parametrize("name", bundled_scenarios())
def test_every_bundled_scenario_loads_and_has_a_title(name: str) -> None:
    plan, _ = load_plan(name, Overrides())
    assert plan.cells
    assert plan.title != name
