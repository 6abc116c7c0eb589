"""File transfers in table and words, and what a scenario may say of them."""

from dataclasses import replace

import builders

from rigctl.records import (
    Cell,
    Direction,
    DiskTimes,
    Flow,
    Link,
    Pair,
    Repetition,
    RunInfo,
    Side,
    Status,
    TcpInfo,
)

PAIR = Pair("a", "b")


def measured(*cells: tuple[Cell, float], virtual: str | None = None) -> tuple[RunInfo, list[Repetition]]:
    info = builders.run(builders.plan(tuple(transferred for transferred, _ in cells)))
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    repetitions = []
    for transferred, elapsed_s in cells:
        end_ns = round(elapsed_s * 1e9) + 1
        read_us = round(elapsed_s * 6e5) if transferred.file.read == "disk" else None
        size = transferred.message_bytes or 0
        sender = Side(size, 1, end_ns, tcp=TcpInfo(mss=1448, pmtu=1500, timestamps=True), disk=DiskTimes(read_us))
        written = transferred.file.write == "disk"
        receiver = Side(size, 1, end_ns, disk=DiskTimes(200_000, 50_000) if written else None)
        flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver)
        repetitions.append(Repetition(transferred.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,)))
    return replace(info, plan=replace(info.plan, links=links, virtual=virtual), facts={}), repetitions
