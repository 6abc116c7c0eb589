"""Against the peers: goodput, processor time, round trips and datagrams of each tool in turn, on one machine.

`measure` writes one JSON line per run, so that a comparison can be measured in slices; `table` judges any number of
such files. Peers that are not installed are left out by name; `--peers FOLDER` says where others have been built.

    python tests/bench/bench_peers.py measure streams --rounds 5 --out raw.jsonl
    python tests/bench/bench_peers.py table raw.jsonl
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import peers_datagrams
import peers_messages
import peers_streams
from peers_lab import Place, laid_out, measured, program
from peers_table import Record, tables

from rigctl.remote.build import build, host_machine

FAILURES = (AssertionError, ValueError, KeyError, IndexError, TimeoutError, subprocess.TimeoutExpired)
KINDS = ("streams", "messages", "datagrams")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step")
    measure = steps.add_parser("measure")
    measure.add_argument("kind", choices=KINDS)
    measure.add_argument("--flows", type=int, action="append")
    measure.add_argument("--offloads", choices=("on", "off"), action="append")
    measure.add_argument("--placement", choices=("scheduler", "taskset"), action="append")
    measure.add_argument("--size", type=int, action="append")
    measure.add_argument("--tool", action="append", help="only these")
    measure.add_argument("--rounds", type=int, default=5)
    measure.add_argument("--seconds", type=int, default=1)
    measure.add_argument("--peers", type=Path, action="append", default=[])
    measure.add_argument("--agent", help="another agent than this checkout's")
    measure.add_argument("--out", type=Path, help="where to add the raw figures")
    steps.add_parser("table").add_argument("raw", type=Path, nargs="+")
    asked = parser.parse_args(sys.argv[1:] or ["measure", "streams"])
    if asked.step == "measure":
        records = []
        for record in measure_all(asked):
            records.append(record)
            if asked.out is not None:
                with asked.out.open("a") as out:
                    out.write(json.dumps(record) + "\n")
    else:
        records = [json.loads(line) for file in asked.raw for line in file.read_text().splitlines()]
    print("\n".join(tables(records)))


def measure_all(asked: argparse.Namespace) -> Iterator[Record]:
    own = asked.agent or str(build([host_machine()])[0].path)
    room = {"streams": peers_streams, "messages": peers_messages, "datagrams": peers_datagrams}[asked.kind]
    tools = [
        (tool, own if tool.own else program(tool.program, asked.peers))
        for tool in room.TOOLS
        if not asked.tool or tool.name in asked.tool
    ]
    for name in dict.fromkeys(tool.program for tool, found in tools if found is None):
        print(f"left out: {name} is not installed", file=sys.stderr)
    axis = asked.flows if asked.kind == "streams" else asked.size
    for offloads, placement in itertools.product(asked.offloads or ["on"], asked.placement or ["scheduler"]):
        place = Place(offloads == "on", placement == "taskset")
        with laid_out(place) as ends:
            for step, number in itertools.product(range(asked.rounds), axis or list(room.DEFAULTS)):
                for tool, found in tools[step % len(tools) :] + tools[: step % len(tools)]:
                    if found is None or number > tool.most:
                        continue
                    record: Record = {
                        "kind": asked.kind,
                        "offloads": place.offloads,
                        "placement": place.placement,
                        "number": number,
                        "tool": tool.name,
                        "own": tool.own,
                        "work": tool.work,
                        "round": step,
                    }
                    try:
                        record |= measured(tool, found, ends, number, asked.seconds, pinned=place.pinned)
                    except FAILURES as error:
                        record["failed"] = f"{type(error).__name__}: {error}"[:200]
                        print(f"{place}, {number}: {tool.name} failed: {record['failed']}", file=sys.stderr)
                    yield record


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("namespaces and control groups need root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that nothing is left of it either
    main()
