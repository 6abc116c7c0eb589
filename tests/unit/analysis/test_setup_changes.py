"""What differs between two runs beside what they measured."""

from dataclasses import replace
from typing import Any

import builders as make

from rigctl.analysis.nights.setup_changes import SetupChange, Source, setup_changes
from rigctl.records import BASELINE, CONFIRMS, Link, RunInfo

KERNEL = "Linux 6.12.47+rpt-rpi-v8 aarch64"
NODES = ("pi1", "pi2", "pi3", "pi4")


def real(**of_all: Any) -> RunInfo:
    plan = replace(make.plan(), virtual=None)
    return make.run(plan, facts={node: make.facts(**of_all) for node in plan.links})


def names(before: RunInfo, after: RunInfo) -> list[str]:
    return [change.name for change in setup_changes(before, after)]


def test_a_kernel_on_all_nodes_is_one_change_with_their_names() -> None:
    before = real()
    (change,) = setup_changes(before, real(kernel=KERNEL))
    assert change == SetupChange(Source.FACT, "kernel", before.facts["pi1"]["kernel"], KERNEL, NODES, everywhere=True)


def test_settings_inside_a_fact_are_compared_one_by_one() -> None:
    after = real(sysctls={"net.core.rmem_max": "425984", "net.ipv4.tcp_timestamps": "1"}, offloads={"tso": False})
    found = {(change.name, change.before, change.after) for change in setup_changes(real(), after)}
    assert found == {("net.core.rmem_max", "212992", "425984"), ("offloads: tso", True, False)}


def test_what_is_unknown_in_one_run_has_not_changed() -> None:
    before, after = real(), real(speed_bps=None, driver=None)
    link = Link(rate_bps=None, mtu=None)
    after = replace(after, plan=replace(after.plan, links=dict.fromkeys(NODES, link)), versions={"rigctl": "0.1.0"})
    assert setup_changes(before, after) == []


def test_a_node_that_only_one_run_has_is_a_change_but_one_whose_facts_are_unknown_is_none() -> None:
    before, after = real(), real()
    del after.facts["pi3"]
    assert setup_changes(before, after) == []
    plan = replace(after.plan, links={node: link for node, link in after.plan.links.items() if node != "pi3"})
    assert setup_changes(before, replace(after, plan=plan)) == [SetupChange(Source.RIG, "node", "pi3", None)]
    assert setup_changes(replace(after, plan=plan), before) == [SetupChange(Source.RIG, "node", None, "pi3")]


def test_the_link_speed_comes_first_and_a_restart_last() -> None:
    after = replace(real(boot_id="another", kernel=KERNEL, speed_bps=10**8), tags={"kernel": "new"})
    after = replace(after, plan=replace(after.plan, repeat=9))
    assert names(real(), after) == ["speed_bps", "kernel", "repeat", "kernel", "boot_id"]


def test_addresses_that_a_virtual_rig_makes_anew_are_no_change_but_those_of_hardware_are() -> None:
    virtual = make.run()
    anew = replace(virtual, facts={node: make.facts(mac="02:00:00:00:00:07") for node in virtual.facts})
    assert setup_changes(virtual, anew) == []
    assert names(real(), real(mac="02:00:00:00:00:07")) == ["mac"]


def test_scenario_rig_file_versions_and_tags_are_of_the_run() -> None:
    before = real()
    plan = replace(before.plan, scenario_yaml="title: another", links=before.plan.links | {"pi1": Link(10**8, 1500)})
    versions = before.versions | {"rigctl": "0.3.0", "agent x86_64 sha256": "1" * 64}
    tags = {"firmware": "1.2", CONFIRMS: "another", BASELINE: ""}
    after = replace(before, plan=plan, versions=versions, tags=tags)
    before = replace(before, versions=before.versions | {"agent x86_64 sha256": "0" * 64}, tags={"firmware": "1.1"})
    found = setup_changes(before, after)
    of_the_run = {change.name for change in found if not change.where}
    assert of_the_run == {"scenario_yaml", "rigctl", "agent x86_64 sha256", "firmware"}
    assert SetupChange(Source.TAG, "firmware", "1.1", "1.2") in found
    assert SetupChange(Source.RIG, "link rate_bps", 10**9, 10**8, ("pi1",)) in found
