"""What differs between two runs beside what they measured."""

from dataclasses import replace
from typing import Any

import builders as make

from rigctl.analysis.fact_changes import FactChange, fact_changes, on_nodes
from rigctl.records import BASELINE, CONFIRMS, Link, RunInfo

KERNEL = "Linux 6.12.47+rpt-rpi-v8 aarch64"


def real(**of_all: Any) -> RunInfo:
    plan = replace(make.plan(), virtual=None)
    return make.run(plan, facts={node: make.facts(**of_all) for node in plan.links})


def test_the_same_twice_has_no_changes() -> None:
    assert fact_changes(real(), real()) == []


def test_a_kernel_on_all_nodes_is_one_change_with_their_names() -> None:
    before, after = real(), real(kernel=KERNEL)
    changes = fact_changes(before, after)
    assert [change.node for change in changes] == ["pi1", "pi2", "pi3", "pi4"]
    ((nodes, change),) = on_nodes(changes)
    assert nodes == ("pi1", "pi2", "pi3", "pi4")
    assert (change.name, change.before, change.after) == ("kernel", before.facts["pi1"]["kernel"], KERNEL)


def test_settings_inside_a_fact_are_compared_one_by_one() -> None:
    after = real(sysctls={"net.core.rmem_max": "425984", "net.ipv4.tcp_timestamps": "1"}, offloads={"tso": False})
    found = {(change.name, change.before, change.after) for change in fact_changes(real(), after)}
    assert found == {("net.core.rmem_max", "212992", "425984"), ("offloads: tso", True, False)}


def test_what_is_unknown_in_one_run_has_not_changed() -> None:
    assert fact_changes(real(), real(speed_bps=None, driver=None)) == []


def test_the_link_speed_comes_first_and_a_restart_last() -> None:
    after = real(boot_id="another", kernel=KERNEL, speed_bps=10**8)
    names = [change.name for change in fact_changes(real(), after) if change.node == "pi1"]
    assert names == ["speed_bps", "kernel", "boot_id"]


def test_addresses_that_a_virtual_rig_makes_anew_are_no_change_but_those_of_hardware_are() -> None:
    virtual = make.run()
    anew = replace(virtual, facts={node: make.facts(mac="02:00:00:00:00:07") for node in virtual.facts})
    assert fact_changes(virtual, anew) == []
    assert {change.name for change in fact_changes(real(), real(mac="02:00:00:00:00:07"))} == {"mac"}


def test_scenario_rig_file_versions_and_tags_are_of_the_run() -> None:
    before = real()
    plan = replace(before.plan, scenario_yaml="title: another", links=before.plan.links | {"pi1": Link(10**8, 1500)})
    versions = before.versions | {"rigctl": "0.3.0", "agent x86_64 sha256": "1" * 64}
    own = {"firmware": "1.2", CONFIRMS: "another", BASELINE: ""}
    after = replace(before, plan=plan, versions=versions, tags=own)
    before = replace(before, versions=before.versions | {"agent x86_64 sha256": "0" * 64}, tags={"firmware": "1.1"})
    found = fact_changes(before, after)
    assert {change.name for change in found if change.node is None} == {
        "scenario",
        "rigctl",
        "agent x86_64 sha256",
        "tag firmware",
    }
    assert FactChange(None, "tag firmware", "1.1", "1.2") in found
    assert FactChange("pi1", "rig file: rate_bps", 10**9, 10**8) in found


def test_agents_that_were_built_together_are_one_change() -> None:
    names = ("agent x86_64 sha256", "agent aarch64 sha256")
    before, after = (replace(real(), versions=dict.fromkeys(names, digit * 64)) for digit in "01")
    assert [change.name for change in fact_changes(before, after)] == ["agent x86_64 sha256"]
