"""From a scenario and the options to the plan of a run."""

from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.records import Cell, Direction, Pair, Retest, Until
from rigctl.scenario.load import Overrides, bundled_scenarios, load_plan
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
    assert said.count("it has not all nodes of the pairs in s.yaml. Give pairs of its own nodes") == bool(instead)
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
    assert bundled_scenarios()["gigablox"] == resources.scenarios() / "gigablox.yaml"


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
    assert set(FIELDS) - {text.partition("=")[0] for text in sets} == {"pairs", "until"}
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
