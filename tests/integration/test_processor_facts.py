"""Facts on processors and the card: read by busybox alone from made-up nodes, and from this machine's kernel."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from node_trees import TREES, made
from processes import DEADLINE_S, output_of

from rigctl.base.units import parse_processors
from rigctl.probe.facts import parse, script
from rigctl.probe.processors import CHECKED, FACTS
from rigctl.probe.readiness import CHECKED as EVERY

ENTER = 'mount --bind /dev/null "$1/dev/null" && exec chroot "$1" /bin/sh -c "$2"'


@pytest.mark.parametrize("name", TREES)
def test_busybox_and_the_files_of_a_node_are_enough(name: str, tmp_path: Path) -> None:
    made(TREES[name], tmp_path)
    for folder in ("bin", "dev"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dev/null").touch()
    busybox = shutil.which("busybox")
    assert busybox is not None, "the Debian package busybox-static is missing"
    shutil.copy(busybox, tmp_path / "bin/busybox")
    for applet in ("sh", "cat", "grep", "readlink", "ls", "uname", "od", "tr", "nproc", "id", "date"):
        (tmp_path / "bin" / applet).symlink_to("busybox")
    words = ["unshare", "-rm", "sh", "-c", ENTER, "sh", str(tmp_path), script("eth0", "10.0.0.1", EVERY)]
    said = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S)
    assert said.stderr == ""
    facts = parse(said.stdout, EVERY)
    expected = TREES[name].facts
    assert {key: facts[key] for key in expected} == expected
    assert facts["pause"] is None


def test_what_this_kernel_has_is_read_and_what_it_lacks_is_unknown() -> None:
    cards = [path.name for path in Path("/sys/class/net").iterdir() if (path / "device").exists()]
    for interface in [*cards, "lo"]:
        facts = parse(output_of(["sh", "-c", f"{script(interface, '', EVERY)}\ntrue"]), EVERY)
        assert (facts["interface"], facts.keys() >= {*FACTS, *CHECKED}) == (interface, True)
        queues = list(Path("/sys/class/net", interface, "queues").glob("rx-*"))
        assert facts["rx_queues"] == (len(queues) if interface in cards else None)
        assert facts["allowed_processors"] is not None
        assert parse_processors(facts["allowed_processors"]) >= os.sched_getaffinity(0)
        lists = Path("/sys/devices/system/node").glob("node*/cpulist")
        nodes = {path.parent.name.removeprefix("node"): path.read_text().strip() for path in lists}
        assert facts["numa_processors"] == ({node: cpus for node, cpus in nodes.items() if cpus} or None)
        states = [int(path.read_text()) for path in Path("/sys/devices/system/cpu/cpu0/cpuidle").glob("state*/latency")]
        assert facts["idle_latency_us"] is None or facts["idle_latency_us"] in states
        assert (facts["idle_state"] is None) == (not states)
        places = [Path("/sys/class/net", interface, "device", *up, "numa_node") for up in ((), ("..",))]
        said_nodes = [path.read_text().strip() for path in places if path.exists()]
        only_one = Path("/sys/devices/system/node/online").read_text().strip() == "0"
        node = said_nodes[0] if said_nodes else "-1"
        assert facts["numa_node"] == (int(node) if node != "-1" else 0 if said_nodes and only_one else None)
        if interface == "lo":
            assert {facts[key] for key in ("numa_node", "interrupt_processors", "rps", "pause")} == {None}
