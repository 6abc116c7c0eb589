"""Conditions and shared windows: from the file to the cells, in order, with every mistake at its place."""

import re
from functools import partial
from itertools import groupby
from pathlib import Path

import planning
from cases import from_file

from rigctl.records import Condition, HostSetting, RunPlan
from rigctl.scenario.load import Overrides, load_plan
from rigctl.settings import CONGESTION, WINDOW, WINDOW_TOTAL

HEAD = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
planned, message = partial(planning.planned, head=HEAD), partial(planning.message, head=HEAD)


def test_what_a_condition_sets_is_kept_in_the_order_in_which_it_is_set(tmp_path: Path) -> None:
    text = (
        "conditions:\n  all: {governor: performance, congestion: reno, offload: {gro: off, tso: true}, mtu: 9000,\n"
        '    sysctl: {net.ipv4.tcp_rmem: "4096   65536  1048576", net/ipv4/conf/eth0.5/rp_filter: 2}, resize: false}\n'
    )
    settings = (
        HostSetting("mtu", "9000"),
        HostSetting("sysctl", "4096 65536 1048576", "net.ipv4.tcp_rmem"),
        HostSetting("sysctl", "2", "net.ipv4.conf.eth0/5.rp_filter"),
        HostSetting("offload", "off", "gro"),
        HostSetting("offload", "on", "tso"),
        HostSetting("sysctl", "reno", "net.ipv4.tcp_congestion_control"),
        HostSetting("governor", "performance"),
    )
    assert planned(tmp_path, text).conditions == (Condition("all", settings),)


def test_settings_of_a_card_are_single_settings_and_what_governs_the_others_comes_first(tmp_path: Path) -> None:
    text = (
        "conditions:\n  all: {rps: [0, 2-3, 3], sysctl: {net.core.default_qdisc: fq}, pause: {rx: off, autoneg: off},\n"
        "    qdisc: {kind: tbf, limit: 400K, burst: 131072, rate: 500 Mbit/s}, mtu: 9000, channels: {combined: 4},\n"
        "    coalesce: {rx_usecs: 50, adaptive_rx: off, tx_frames: 0}, rings: {tx: 1024, rx: 512}, eee: off}\n"
    )
    (condition,) = planned(tmp_path, text).conditions
    assert [f"{setting.label}: {setting.value}" for setting in condition.settings] == [
        "qdisc: tbf rate 500M burst 128K limit 400K", "mtu: 9000", "rings rx: 512", "rings tx: 1024",
        "channels combined: 4", "coalesce adaptive_rx: off", "coalesce rx_usecs: 50", "coalesce tx_frames: 0",
        "pause autoneg: off", "pause rx: off", "eee: off", "rps: 0,2-3", "net.core.default_qdisc: fq",
    ]  # fmt: skip


@from_file
def test_a_qdisc_and_processors_are_given_in_several_ways(tmp_path: Path, section: str, value: str) -> None:
    (condition,) = planned(tmp_path, f"conditions: {{a: {{{section}}}}}\n").conditions
    assert [setting.value for setting in condition.settings] == [value]


def told(plan: RunPlan) -> list[tuple[str | None, int, bool]]:
    return [(cell.condition, cell.parallel, cell.resize) for cell in plan.cells]


def test_every_cell_is_measured_under_every_condition_which_change_slowest(tmp_path: Path) -> None:
    text = "conditions: {b: {mtu: 1400}, a: {resize: true}}\nmatrix: {parallel: [1, 2]}\ninclude: [{parallel: 9}]\n"
    expected = [(name, parallel, name == "a") for name in "ba" for parallel in (1, 2, 9)]
    assert told(planned(tmp_path, text)) == expected


def test_a_row_and_an_axis_may_name_their_condition(tmp_path: Path) -> None:
    text = "conditions: {a: {mtu: 1400}, b: {}}\nmatrix: {parallel: [1, 2]}\n"
    assert told(planned(tmp_path, f"{text}exclude: [{{condition: a, parallel: 2}}]\n")) == [
        ("a", 1, False), ("b", 1, False), ("b", 2, False),
    ]  # fmt: skip
    assert told(planned(tmp_path, f"{text}include: [{{condition: b, parallel: 7}}]\n"))[-1] == ("b", 7, False)
    only_b = planned(tmp_path, text, "condition=b")
    assert told(only_b) == [("b", 1, False), ("b", 2, False)]
    assert [condition.name for condition in only_b.conditions] == ["b"]  # what no cell uses is not applied


@from_file
def test_a_mistake_in_a_condition_is_told_with_its_place(tmp_path: Path, section: str, said: str) -> None:
    full = message(tmp_path, section if "conditions:" in section else f"conditions: {{a: {{{section}}}}}")
    assert said in full
    assert re.search(r"s\.yaml:[3-7]:", full)


def test_what_is_within_the_bounds_of_a_condition_is_taken(tmp_path: Path) -> None:
    def taken(settings: str) -> Condition:
        (condition,) = planned(tmp_path, f"conditions: {{a: {{{settings}}}}}").conditions
        return condition

    longest = taken(f"sysctl: {{net.{'x' * 251}: {'y' * 255}}}")
    assert longest.settings == (HostSetting("sysctl", "y" * 255, f"net.{'x' * 251}"),)
    assert taken("mtu: 65535").mtu == 65535
    assert taken("mtu: 1280, sysctl: , offload: ").settings == (HostSetting("mtu", "1280"),)
    assert taken("resize: true, sysctl: {net.ipv4.tcp_moderate_rcvbuf: 1, net.ipv4.tcp_sack: 0}").resize
    assert not taken("resize: false, sysctl: {net.ipv4.tcp_moderate_rcvbuf: 0}").resize


def test_a_condition_sets_as_much_as_an_agent_holds_and_no_more(tmp_path: Path) -> None:
    keys = "mtu: 1500, congestion: reno, governor: performance, offload: {gro: on}, rings: {rx: 9, tx: 9}, rps: 0"
    text = "conditions: {a: {%s, sysctl: {%s}}}\n"
    sysctls = [f"net.x.a{at}: 1" for at in range(55)]
    (most,) = planned(tmp_path, text % (keys, ", ".join(sysctls[:54]))).conditions
    assert len(most.settings) == 61
    said = message(tmp_path, text % (keys, ", ".join(sysctls)))
    assert 's.yaml:3:14: condition "a": sets more than 61 values, the most that an agent takes.' in said


def test_an_mtu_as_large_as_the_switch_carries_is_taken(tmp_path: Path) -> None:
    text, head = "conditions: {huge: {mtu: %d}}", "rig: das2\npairs: [left -> right]\n"
    assert planned(tmp_path, text % 9216, head=head).conditions[0].mtu == 9216
    for mtu in (9217, 65535):
        said = f's.yaml:3:26: mtu "{mtu}": is above 9216, the MTU of switch force10 in rig das2'
        assert message(tmp_path, text % mtu, head=head).startswith(said)


def test_each_flow_gets_its_share_of_a_shared_window_rounded_down(tmp_path: Path) -> None:
    plan = planned(tmp_path, "matrix: {window_total: [default, 32K, 256K], parallel: 1..10 times 3}\n")
    shares = [(cell[WINDOW_TOTAL], cell.parallel, cell[WINDOW]) for cell in plan.cells]
    assert shares[:3] == [(None, 1, None), (None, 3, None), (None, 9, None)]
    assert shares[3:6] == [(32768, 1, 32768), (32768, 3, 10922), (32768, 9, 3640)]
    assert shares[6:] == [(262144, 1, 262144), (262144, 3, 87381), (262144, 9, 29127)]


def test_a_shared_window_beside_window_or_with_a_share_below_a_kibibyte_is_a_mistake(tmp_path: Path) -> None:
    said = message(tmp_path, "matrix: {window_total: 32K, window: 64K}\n")
    assert (
        "window_total: window is set too. Choose one: the window of each flow, or the sum of all flows (test 1)."
        in said
    )
    what = "window_total: 32768 bytes over 33 flows are 992 each; a window is 1024 at least (test 1)."
    assert what in message(tmp_path, "matrix: {window_total: 32K, parallel: 33}\n")
    assert message(tmp_path, "matrix: {parallel: 33}\n", "window_total=32K") == f"--set window_total=32K: {what}"


def test_das2_has_480_cells_under_each_of_its_conditions() -> None:
    plan, rig = load_plan("das2", Overrides())
    found = {name: list(cells) for name, cells in groupby(plan.cells, lambda cell: cell.condition)}
    assert list(found) == ["no resize 1500", "no resize 8176", "resize 1500", "resize 8192"]
    sizes = [size * 1024 for size in (32, 64, 128, 256)]
    shape = [(w, w // f, f, p) for w in sizes for f in range(1, 11) for p in range(1, 13)]
    for name, cells in found.items():
        assert [(one[WINDOW_TOTAL], one[WINDOW], one.parallel, len(one.pairs)) for one in cells] == shape
        assert {(cell.resize, cell[CONGESTION]) for cell in cells} == {(str(name).startswith("resize"), "cubic")}
    assert (plan.virtual, plan.trunk, plan.ports) == (rig.virtual, rig.trunk, rig.ports) != (None, None, ())
    assert plan.links == {name: node.link for name, node in rig.nodes.items()}
    assert "DAS-2" in plan.title
