"""Where the threads of flows run: as asked, as told, and one message where a node cannot."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from processes import eventually
from talk import Report, Start, Talk, arrived, flowing, ran, settings, tasks_of

CPUS = sorted(os.sched_getaffinity(0))
FIRST, LAST = CPUS[0], CPUS[-1]
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="needs two processors")


def processors(report: Report) -> set[int]:
    return {processor for totals in report.totals.values() for processor, _ in totals["processors"]}


def allowed(agent: Talk) -> list[str]:
    """Return the processors that each thread of an agent but its main one may run on."""
    tasks = [task for task in tasks_of(agent) if task.name != str(agent.process.pid)]
    lists = [line for task in tasks for line in (task / "status").read_text().splitlines()]
    return [line.split()[1] for line in lists if line.startswith("Cpus_allowed_list")]


@from_file
def test_both_ends_run_where_they_were_asked_to_run(start: Start, what: str, how: str, ends: dict[str, Any]) -> None:
    ends = ends | {"listen": f"placement={LAST}", "connect": f"placement={FIRST}"}
    assert [*map(processors, ran(start, how, flows=2, extra=what, **ends))] == [{LAST}, {FIRST}]


def test_a_list_may_have_ranges_and_each_sample_notes_a_processor(start: Start) -> None:
    placement = f"placement={FIRST},{FIRST}-{FIRST},{LAST}"
    for report in ran(start, until=10_000_000, flows=2, interval_ms=10, extra=placement):
        assert processors(report) <= {FIRST, LAST}
        for flow, totals in report.totals.items():
            assert 0 < sum(count for _, count in totals["processors"]) <= len(report.rows[flow])


@pytest.mark.parametrize("what", ["", " busy=1", " transport=udp"])
def test_a_flow_that_is_to_follow_its_packets_is_moved_and_another_is_not(start: Start, what: str) -> None:
    *stay, port = flowing(start, extra="test=pingpong size=64")
    *move, _ = flowing(start, extra=f"test=pingpong size=64 placement=packets{what}")
    eventually(lambda: all(own.isdigit() for agent in move for own in allowed(agent)))
    arrived(stay[1], port, 64_000)
    assert not any(own.isdigit() for agent in stay for own in allowed(agent))


@from_file
def test_what_a_node_cannot_do_is_one_message(start: Start, asked: str, message: str) -> None:
    answer = start().ask(f"listen endpoint=1 address=127.0.0.1 {settings()} interface=lo placement={asked}")
    assert (answer["ok"], answer["message"][: len(message)]) == (False, message)


@contextmanager
def recorded(binary: Path, folder: Path, card: str, online: str = "0-1", only: int | None = None) -> Iterator[Start]:
    """Yield what starts agents on two NUMA nodes of one processor each, by the files of sysfs, with a card at one."""
    for node, cpu in enumerate((FIRST, LAST)):
        place = folder / f"devices/system/node/node{node}"
        (place / f"cpu{cpu}").mkdir(parents=True)
        (place / "cpulist").write_text(f"{cpu}\n")
    (folder / "devices/system/node/online").write_text(f"{online}\n")
    (folder / "class/net/lo/device").mkdir(parents=True)
    (folder / "class/net/lo/device/numa_node").write_text(f"{card}\n")
    pinned = "" if only is None else f"taskset -c {only} "
    shell = f'mount --bind {folder} /sys && exec {pinned}"$0" "$@"'
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Talk(["unshare", "-rm", "sh", "-c", shell, str(binary)]))


@pytest.mark.parametrize(("card", "own", "other"), [("1", LAST, FIRST), ("0", FIRST, LAST)])
def test_nic_is_the_numa_node_of_the_card(binary: Path, tmp_path: Path, card: str, own: int, other: int) -> None:
    with recorded(binary, tmp_path, card) as start:
        came, sent = ran(start, until=1, extra="interface=lo", listen="placement=nic", connect=f"placement={other}")
        assert (processors(came), processors(sent)) == ({own}, {other})
        assert (came.totals[0]["numa_node"], came.totals[0]["card_numa_node"]) == (int(card), int(card))
        assert (sent.totals[0]["numa_node"], sent.totals[0]["card_numa_node"]) == (1 - int(card), int(card))


def test_a_card_without_a_node_is_at_the_only_node(binary: Path, tmp_path: Path) -> None:
    with recorded(binary, tmp_path, "-1", online="0") as start:
        received, _ = ran(start, until=1, extra="interface=lo placement=nic")
        assert processors(received) == {FIRST}


@pytest.mark.parametrize(
    ("card", "asked", "message"),
    [
        ("-1", "nic", "placement: nic: this system does not tell the NUMA node of lo; name processors instead"),
        ("1", "nic", "placement: nic: the agent may use no processor of NUMA node 1, the node of lo"),
        ("1", f"{LAST}", f"placement: processor {LAST} is not among those that the agent may use: {FIRST}"),
    ],
)
def test_a_foreign_processor_is_refused(binary: Path, tmp_path: Path, card: str, asked: str, message: str) -> None:
    with recorded(binary, tmp_path, card, only=FIRST) as start:
        order = f"listen endpoint=1 address=127.0.0.1 {settings()} interface=lo placement={asked}"
        assert start().ask(order)["message"] == message
