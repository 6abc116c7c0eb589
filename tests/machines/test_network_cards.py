"""Two drivers of real network cards, virtio_net and e1000e: facts, check, offload conditions, captures."""

import json

import pytest
from machine_lab import SETTINGS, Lab

pytestmark = [pytest.mark.machines, pytest.mark.timeout(600)]


def test_facts_name_driver_speed_and_processor_of_each(mixed: Lab) -> None:
    mixed.contact()
    facts = mixed.facts()
    assert {node: known["driver"] for node, known in facts.items()} == {"amd": "e1000e", "arm": "virtio_net"}
    assert {node: known["kernel"].split()[-1] for node, known in facts.items()} == {"amd": "x86_64", "arm": "aarch64"}
    for known in facts.values():
        assert (known["speed_bps"], known["duplex"], known["mtu"]) == (1_000_000_000, "full", 1500)
        assert known["interface"] == "eth0"
        assert known["virtual"] is False  # a driver stands behind it
    assert facts["amd"]["boot_id"] != facts["arm"]["boot_id"]


def test_check_sees_both_links_and_each_nodes_own_clock(mixed: Lab) -> None:
    found = json.loads(mixed.user.rigctl("check", str(mixed.file), "--json", deadline_s=200))
    errors = [finding for finding in found["findings"] if finding["level"] == "error"]
    assert errors == []


@pytest.mark.parametrize("condition", ["{gro: off, tx: off, tso: off}", "{tso: off}"])
def test_an_offload_condition_changes_what_the_driver_can_change_and_is_put_back(mixed: Lab, condition: str) -> None:
    before = mixed.each(SETTINGS)
    text = f"pairs: [amd -> arm]\nduration: 1s\nmax_skew: 10s\nconditions:\n  plain: {{offload: {condition}}}\n"
    print(mixed.good(mixed.scenario(text))[-1500:])
    assert mixed.each(SETTINGS) == before


def test_a_capture_on_a_real_interface_holds_the_frames_of_the_flow(mixed: Lab) -> None:
    text = "pairs: [amd -> arm]\nduration: 3s\nmax_skew: 10s\ncapture: true\n"
    name = mixed.scenario(text)
    words = ["run", name, "--report", "page.html"]
    said = mixed.user.rigctl(*words, deadline_s=300)
    # A repetition that a busy machine made invalid has files, too.
    files = [file for file in sorted(mixed.user.folder.rglob("*.pcap")) if "-attempt" not in file.name]
    assert [file.stem.rpartition("-at-")[2] for file in files] == ["amd", "arm"], said
    print([f"{file.name}: {file.stat().st_size} bytes" for file in files])
    assert all(file.stat().st_size > 10_000 for file in files)
