"""Two drivers of real network cards, virtio_net and e1000e; the processor of a Raspberry Pi 4, by the GigaBlox runs."""

import json

import pytest
from machine_lab import SETTINGS, Lab

pytestmark = [pytest.mark.machines, pytest.mark.timeout(900)]


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
    assert [finding for finding in found["findings"] if finding["level"] == "error"] == []


@pytest.mark.parametrize("condition", ["{gro: off, tx: off, tso: off}", "{tso: off}"])
def test_an_offload_condition_changes_what_the_driver_can_change_and_is_put_back(mixed: Lab, condition: str) -> None:
    before = mixed.each(SETTINGS)
    print(mixed.good(mixed.scenario(_conditions(f"  plain: {{offload: {condition}}}\n")))[-1500:])
    assert mixed.each(SETTINGS) == before


def _conditions(text: str) -> str:
    return f"pairs: [amd -> arm]\nduration: 1s\nmax_skew: 10s\nconditions:\n{text}"


def test_settings_of_a_card_are_changed_on_both_drivers_and_put_back(mixed: Lab) -> None:
    before = mixed.each(SETTINGS)
    text = "  small: {rings: {rx: 128, tx: 128}, qdisc: {kind: pfifo, limit: 500}, rps: all}\n"
    mixed.good(mixed.scenario(_conditions(text)))
    for node, facts in mixed.facts().items():
        print(node, granted := facts["condition small"])
        assert granted["rings rx"] == "256 -> 128"
        assert granted["qdisc"].endswith(" -> pfifo limit 500")
        assert granted["rps"].startswith("off -> 0")
    assert mixed.each(SETTINGS) == before


@pytest.mark.parametrize(
    ("qdisc", "granted"),
    [
        ("fq, limit: 5000, maxrate: 800M, pacing: on", ("fq limit 5000 ", " pacing on", " maxrate 800M")),
        ("fq_codel, limit: 500, ecn: off, memory_limit: 4M", ("fq_codel limit 500 ", "ecn off", " memory_limit 4M")),
    ],
)
def test_a_fair_queue_is_set_and_the_default_comes_back(mixed: Lab, qdisc: str, granted: tuple[str, ...]) -> None:
    before = mixed.each(SETTINGS)
    mixed.good(mixed.scenario(_conditions(f"  fair: {{qdisc: {{kind: {qdisc}}}}}\n")))
    for node, facts in mixed.facts().items():
        print(node, text := facts["condition fair"]["qdisc"])
        assert " (default) -> " in text
        assert all(part in text for part in granted)
        assert "asked for" not in text
    assert mixed.each(SETTINGS) == before


def test_a_card_that_refuses_says_what_it_takes_to_check_as_to_a_run(mixed: Lab) -> None:
    before = mixed.each(SETTINGS)
    name = mixed.scenario(_conditions("  large: {rings: {rx: 9000}}\n  frames: {coalesce: {rx_frames: 20}}\n"))
    found = json.loads(mixed.user.rigctl("check", name, "--json", deadline_s=200, code=3))["findings"]
    errors = " ".join(finding["text"] for finding in found if finding["level"] == "error")
    code, said = mixed.run(name)
    assert code == 3
    refused = "condition large: set: rings rx of eth0: Invalid argument; 9000 was asked for, the card takes"
    for most in (4096, 256):
        assert f"{refused} rx up to {most}, tx up to {most} (EINVAL)" in errors
    frames = "coalesce rx_frames of eth0: Not supported; 20 was asked for, the card takes rx_usecs"
    assert f"condition frames: set: {frames}" in errors
    assert refused in " ".join(said.split())
    assert mixed.each(SETTINGS) == before


def test_a_capture_on_a_real_interface_holds_the_frames_of_the_flow(mixed: Lab) -> None:
    name = mixed.scenario("pairs: [amd -> arm]\nduration: 3s\nmax_skew: 10s\ncapture: true\n")
    words = ["run", name, "--report", "page.html"]
    said = mixed.user.rigctl(*words, deadline_s=300)
    # A repetition that a busy machine made invalid has files, too.
    files = [file for file in sorted(mixed.user.folder.rglob("*.pcap")) if "-attempt" not in file.name]
    assert [file.stem.rpartition("-at-")[2] for file in files] == ["amd", "arm"], said
    print([f"{file.name}: {file.stat().st_size} bytes" for file in files])
    assert all(file.stat().st_size > 10_000 for file in files)


EMULATED = "emulated: the results do not apply"


def test_gigablox_runs_by_the_pushed_agent_and_its_figures_are_called_emulations(pis: Lab) -> None:
    said = pis.good("gigablox", "--rig", str(pis.file), "--duration", "3s", "--set", "max_skew=10s")
    assert EMULATED in " ".join(said.split())
    pis.user.rigctl("report", "-o", "page.html", deadline_s=200)
    assert EMULATED in (pis.user.folder / "page.html").read_text()
    rows = pis.user.rows("cells")
    assert sorted({row["cell"] for row in rows}) == list(range(1, 8))
    assert all(row["goodput_mbps"] > 0 for row in rows)
    facts = pis.facts()
    assert {known["kernel"].split()[-1] for known in facts.values()} == {"aarch64"}
    assert {known["cpu_model"] for known in facts.values()} == {"Cortex-A72"}
    assert all(known["emulated"] for known in facts.values())
    for row in rows:
        print(f"test {row['cell']}: {row['goodput_mbps']:.0f} Mbit/s by emulation, skew {row['start_skew_us']} us")
    assert set(pis.each("ls /root/.cache/rigctl/*/agent-* | wc -l").values()) == {"1\n"}
