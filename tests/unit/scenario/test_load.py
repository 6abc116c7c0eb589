"""From a scenario and the options to the plan of a run; options written down with it; `--against` measures twice."""

from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from planning import message, planned

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.records import Cell, Direction, Pair, Retest, Until
from rigctl.scenario.load import Overrides, find_scenarios, load_plan
from rigctl.scenario.overrides import FIELDS
from rigctl.settings import CONGESTION, MSS, NODELAY, WINDOW, Settings

PAIRS = (Pair("pi1", "pi2"), Pair("pi3", "pi4"))


def test_the_plan_keeps_both_texts_and_the_options_as_given() -> None:
    overrides = Overrides(rig="loopback", sets=("window=64K", "omit=1s"), duration="5s", repeat=3)
    plan, rig = load_plan("gigablox", overrides)
    assert (plan.scenario_name, plan.rig_name, rig.name) == ("gigablox", "loopback", "loopback")
    assert plan.scenario_yaml == (resources.scenarios() / "gigablox.yaml").read_text()
    assert plan.rig_yaml == (resources.scenarios() / "rigs" / "loopback.yaml").read_text()
    assert plan.overrides == ("--rig loopback", "--duration 5s", "--repeat 3", "--set window=64K", "--set omit=1s")
    found = [(cell[WINDOW], cell[MSS], cell.parallel) for cell in plan.cells]
    assert found == [(65536, 1460, 1), (65536, 1460, 5), (65536, 8960, 1), (65536, 8960, 5)]
    assert {(plan.repeat, cell.duration_s, cell.omit_s) for cell in plan.cells} == {(3, 5.0, 1.0)}


def test_every_setting_reaches_its_cell(tmp_path: Path) -> None:
    row = "{window: 1M, mss: 100, parallel: 3, congestion: bbr, nodelay: off, direction: both}"
    plan = planned(tmp_path, f"omit: 1.5\ninclude: [{row}]", head="rig: gigablox\npairs: pi1→pi2\n")
    (cell,) = plan.cells
    assert (cell.pairs, cell.omit_s, cell.parallel, cell.direction) == ((PAIRS[0],), 1.5, 3, Direction.BOTH)
    assert cell.settings == Settings({WINDOW: 1048576, MSS: 100, CONGESTION: "bbr", NODELAY: False})
    assert plan.title == plan.scenario_name == "s"


@from_file
def test_pairs_of_another_rig_are_told_with_own(tmp_path: Path, pairs: str, nodes: int, instead: str | None) -> None:
    (tmp_path / "r.yaml").write_text(f'virtual: namespaces\nnodes: {{"a[1..{nodes}]": {{}}}}\n')
    said = message(tmp_path, "omit: 10s", head=f"pairs: {pairs}\n", rig=str(tmp_path / "r.yaml"))
    assert said.count("this rig lacks nodes of the pairs in s.yaml. Give pairs of its own nodes") == bool(instead)
    assert instead is None or f'as in --set "pairs={instead}", or --set pairs=mesh' in said
    told = message(tmp_path, "omit: 10s", "pairs=pi8 -> pi9", head="", rig=str(tmp_path / "r.yaml"))
    assert "it has not all nodes" not in told


def test_the_least_scenario_is_one_cell_as_the_nodes_have_it(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert plan.cells == (Cell(1, "tcp", (PAIRS[0],), 10.0, 0.0, 1),)
    assert (plan.repeat, plan.conditions) == (1, ())


def test_a_rig_path_is_relative_to_its_scenario_or_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, title in ((tmp_path / "a", "beside"), (tmp_path / "b", "here")):
        folder.mkdir()
        (folder / "r.yaml").write_text(f"title: {title}\nvirtual: loopback\nnodes: {{pi1: , pi2: }}\n")
    monkeypatch.chdir(tmp_path / "b")
    head = "rig: r.yaml\npairs: [pi1 -> pi2]\n"
    assert "title: beside\n" in planned(tmp_path / "a", head=head).rig_yaml
    assert "title: here\n" in planned(tmp_path / "a", head=head, rig="r.yaml").rig_yaml


def test_a_rig_option_stands_in_for_a_rig_that_is_missing_or_not_there(tmp_path: Path) -> None:
    for line in ("", "rig: not-there\n"):
        assert planned(tmp_path, head=f"{line}pairs: [pi1 -> pi2]\n", rig="loopback").rig_name == "loopback"


def test_an_unknown_scenario_lists_the_bundled_ones() -> None:
    with pytest.raises(InputError, match=r'unknown scenario "gigabox"\. Did you mean "gigablox"\? Bundled: .*gigablox'):
        load_plan("gigabox", Overrides())
    assert find_scenarios()["gigablox"] == resources.scenarios() / "gigablox.yaml"


def test_every_top_level_field_can_be_set(tmp_path: Path) -> None:
    sets = (
        "title=50", "notes=three\nlines", "test=file", "size=1M", "folder=/mnt/x", "duration=3s", "omit=1s",
        "repeat=4", "retest=variation > 5%", "bins=1ms", "max_skew=20ms", "max_loss=1%", "capture=1",
    )  # fmt: skip
    plan = planned(tmp_path, "", *sets)
    (cell,) = plan.cells
    assert (plan.title, plan.notes, plan.repeat, plan.max_skew_s) == ("50", "three\nlines", 4, 0.02)
    assert (plan.retest, plan.max_loss) == (Retest(0.05, 15), 0.01)
    assert (cell.test, cell.duration_s, cell.omit_s, cell.capture) == ("file", 3.0, 1.0, True)
    assert set(FIELDS) - {text.partition("=")[0] for text in sets} == {"pairs", "until", "max_latency"}
    assert planned(tmp_path, "", "test=requests", "size=1", "per_second=max", "max_latency=5ms").max_latency_s == 0.005
    plan = planned(tmp_path, "", "until=ci95 < 2%", "pairs=pi3 -> pi4")
    assert (plan.until, str(plan.cells[0].pairs[0])) == (Until(0.02, 50), "pi3 -> pi4")


@from_file
def test_the_ip_version_is_decided_once_from_the_rig(tmp_path: Path, address: str, version: int) -> None:
    nodes = ", ".join(f"n{number}: {{address: {address.format(n=number)}}}" for number in (1, 2))
    (tmp_path / "r.yaml").write_text(f"links: {{mtu: 1500}}\nnodes: {{{nodes}}}\n")
    plan = planned(tmp_path, "test: udp\nmatrix: {rate: 10M}", head="rig: ./r.yaml\npairs: [n1 -> n2]\n")
    assert plan.ip_version == version
    # What fills an MTU of 1500: 20 or 40 bytes of IP header and 8 of UDP's less.
    assert plan.cells[0].message_bytes == {4: 1472, 6: 1452}[version]


def data_ports(folder: Path, ports: str) -> None:
    nodes = "".join(f"  {name}: {{data_ports: {ports}}}\n" for name in "abc")
    (folder / "r.yaml").write_text(f"virtual: loopback\nlinks: {{mtu: 1500}}\nnodes:\n{nodes}")


@from_file
def test_a_range_with_too_few_ports_is_refused(tmp_path: Path, ports: str, lines: str, said: str) -> None:
    data_ports(tmp_path, ports)
    assert said in message(tmp_path, lines, head="rig: r.yaml\n")


def test_flows_of_a_stream_share_its_port(tmp_path: Path) -> None:
    data_ports(tmp_path, "5000-5000")
    several = "matrix: {parallel: [1, 10], direction: [forward, reverse, both]}"
    assert len(planned(tmp_path, several, head="rig: r.yaml\npairs: [a -> b]\n").cells) == 6
    data_ports(tmp_path, "5000-5003")
    assert planned(tmp_path, "latency: true", head="rig: r.yaml\npairs: mesh-parallel\n").cells


def test_the_nettest_tables_have_the_titles_of_their_page_and_rfc2544_no_loss() -> None:
    heads = {name: load_plan(name, Overrides())[0].heads for name in ("nettest-pingpong", "nettest-blast")}
    assert heads == {"nettest-pingpong": (("Mean", "AVG"), ("RTT mean", "RTT")), "nettest-blast": (("Mean", "AVG"),)}
    assert load_plan("rfc2544", Overrides())[0].max_loss == 0.0


HEAD = "rig: gigablox\npairs: [pi1 -> pi2]\nrepeat: 4\n"
SETS, RIG_SETS = ("window=64K,200K", "pairs=pi1 -> pi2"), ("trunk.rate=10G", "nodes.pi1.user=pi")
EVERY = Overrides(rig="loopback", sets=SETS, duration="5 s", repeat=3, rig_sets=RIG_SETS, captures=(1, 12))


def test_options_are_written_down_as_they_are_typed() -> None:
    assert EVERY.as_given() == (
        "--rig loopback", "--duration 5 s", "--repeat 3", "--capture 1", "--capture 12",
        "--rig-set trunk.rate=10G", "--rig-set nodes.pi1.user=pi", "--set window=64K,200K", "--set pairs=pi1 -> pi2",
    )  # fmt: skip


def test_what_was_written_down_is_read_again() -> None:
    several = Overrides(repeat=1, sets=("title=a b",)), Overrides(against="congestion=bbr", repeat=5)
    for overrides in (EVERY, Overrides(), *several):
        assert Overrides.from_given(overrides.as_given()) == overrides


def captured(folder: Path, line: str = "", *sets: str, **options: Any) -> list[bool]:
    return [cell.capture for cell in planned(folder, f"matrix: {{parallel: 1..3}}\n{line}", *sets, **options).cells]


def test_frames_are_kept_of_the_tests_that_are_named(tmp_path: Path) -> None:
    assert captured(tmp_path) == [False, False, False]
    assert captured(tmp_path, "capture: [1, 3]") == [True, False, True]
    assert captured(tmp_path, "capture: true") == [True, True, True]
    assert captured(tmp_path, captures=(2,)) == [False, True, False]
    assert captured(tmp_path, "capture: [1]", captures=(2, 3)) == [False, True, True]
    assert captured(tmp_path, "", "capture=1, 2") == [True, True, False]
    assert captured(tmp_path, "", "capture=on") == [True, True, True]
    assert captured(tmp_path, "", "parallel=5,5, 5") == [False]  # a value that is given twice is measured once


@from_file
def test_what_does_not_fit_is_told(
    tmp_path: Path, line: str, option: str, captures: tuple[int, ...], said: str
) -> None:
    text, sets = f"matrix: {{parallel: 1..3}}\n{line}", [option] if option else []
    assert said in message(tmp_path, text, *sets, captures=captures)


def test_a_field_of_the_rig_can_be_replaced_for_a_run(tmp_path: Path) -> None:
    for rig in (None, "gigablox"):
        plan = planned(tmp_path, rig=rig, rig_sets=("links.rate=10G",))
        assert {link.rate_bps for link in plan.links.values()} == {10**10}
    # Another option ends a search for noise without a mistake.
    assert planned(tmp_path, "repeat: 5\nretest: variation > 5%", repeat=1).repeat == 1


@from_file
def test_a_title_is_that_of_the_scenario_only_where_its_tests_are(tmp_path: Path, sets: list[str], title: str) -> None:
    text = "title: Two tests\nmatrix: {window: [64K, 1M]}"
    assert planned(tmp_path, text, *sets, duration="1s", repeat=3).title == title


def test_every_test_gets_a_twin_with_the_other_value(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {parallel: [1, 5]}", head=HEAD, against="congestion=bbr")
    assert made.against is not None
    assert (made.against.setting, made.against.before, made.against.after) == ("congestion", "default", "bbr")
    cells = {cell.number: (cell.parallel, cell[CONGESTION]) for cell in made.cells}
    twins = [(cells[first], cells[second]) for first, second in made.against.twins]
    assert twins == [((1, None), (1, "bbr")), ((5, None), (5, "bbr"))]
    assert "--against congestion=bbr" in made.overrides


@from_file
def test_the_first_variant_is_the_other_value_that_the_scenario_has(
    tmp_path: Path, text: str, against: str, before: str, twins: Any, congestion: list[str | None]
) -> None:
    made = planned(tmp_path, text, head=HEAD, against=against)
    assert made.against is not None
    assert (made.against.before, made.against.twins) == (before, twins)
    assert [cell[CONGESTION] for cell in made.cells] == congestion


def test_of_several_other_values_one_is_chosen(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {parallel: [1, 5, 9]}", "parallel=5", head=HEAD, against="parallel=9")
    assert [cell.parallel for cell in made.cells] == [5, 9]
    said = message(tmp_path, "", against="congestion=bbr", repeat=3)
    assert "needs 4 repetitions or more, the scenario has 3. Give --repeat 4 or more" in said


@from_file
def test_what_cannot_be_compared_is_a_mistake_that_names_the_option(
    tmp_path: Path, text: str, against: str, what: str
) -> None:
    said = message(tmp_path, text, head=HEAD, against=against)
    assert said.startswith(f"--against {against}: ")
    assert what in said
