"""How long nodes take to connect, by rigctl's own SSH client and by ssh(1), and what a command costs.

Real OpenSSH servers on 127.0.0.1. Prints medians of several rounds, the transports in turn. See docs/measured/ssh.md.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from openssh import SshdFactory, new_key

from rigctl.base.errors import NodeError
from rigctl.remote.host import Host, connect_node
from rigctl.remote.session import AT_ONCE
from rigctl.rig.inventory import Node, Transport

_COMMANDS = 20


async def connected(nodes: list[Node]) -> tuple[float, float]:
    """Return the time until all nodes are connected, and the time of a command at the first one, in ms.

    As in a run, `AT_ONCE` nodes are opened at a time.
    """
    began = time.perf_counter()
    turns = asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:

        async def open_one(node: Node) -> Host:
            async with turns:
                return await stack.enter_async_context(connect_node(node))

        hosts = await asyncio.gather(*map(open_one, nodes))
        connect_ms = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        for _ in range(_COMMANDS):
            await hosts[0].run("true")
        return connect_ms, (time.perf_counter() - began) * 1000 / _COMMANDS


async def refused(node: Node) -> float:
    began = time.perf_counter()
    try:
        await connected([node])
    except NodeError:
        return (time.perf_counter() - began) * 1000
    raise RuntimeError(f"{node.name}: logged in with a wrong key")


async def measure(nodes: list[Node], wrong: Path, rounds: int, transports: list[Transport]) -> None:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for transport in transports:
            some = [replace(node, transport=transport) for node in nodes]
            for count in (1, len(some)):
                connect_ms, command_ms = await connected(some[:count])
                found[f"{transport}: connect {count}"].append(connect_ms)
                if count == 1:
                    found[f"{transport}: a command"].append(command_ms)
            found[f"{transport}: a refused login"].append(await refused(replace(some[0], key=wrong)))
    print(f"medians of {rounds}, load {os.getloadavg()[0]:.1f}")
    for what, values in sorted(found.items()):
        print(f"{what}: {statistics.median(values):.1f} ms ({min(values):.1f} to {max(values):.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--transports", nargs="+", default=["ssh", "openssh"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        factory = SshdFactory(Path(folder))
        try:
            nodes = [factory().node(f"pi{number}") for number in range(given.nodes)]
            asyncio.run(measure(nodes, new_key(Path(folder, "wrong")), given.rounds, given.transports))
        finally:
            for server in factory.servers:
                server.stop()


if __name__ == "__main__":
    main()
