"""Seeds for the fuzz targets from real sessions: what goes to agents and comes from them while a scenario is run.

    python tests/bench/record_sessions.py FOLDER SCENARIO [OPTION…]    as `rigctl run SCENARIO OPTION…`

Writes FOLDER/orders/NAME, the orders of all nodes as one agent would get them on loopback, and FOLDER/reply/NAME-NODE.
"""

import re
import sys
from pathlib import Path
from typing import Final

from rigctl.cli.app import exit_code
from rigctl.remote.host import Process

_MOST_ORDERS: Final = 3500
_MOST_REPLY: Final = 3500
_CHECKS: Final = 65445  # the endpoints of checks count down from 65535
TOKEN: Final = b"30313233343536373839616263646566"


class Recorder:
    """Lines of agents in both directions, beside what the run does with them."""

    def __init__(self) -> None:
        self.orders: list[tuple[int, bytes]] = []  # which process, what
        self.replies: dict[int, bytearray] = {}

    def attach(self) -> None:
        write, readline = Process.write, Process.readline

        def writing(process: Process, data: bytes) -> None:
            if re.match(rb"\d+ [a-z]+( |\n)", data):
                self.orders.append((id(process), data))
            write(process, data)

        async def reading(process: Process) -> bytes:
            line = await readline(process)
            if line.startswith(b"{"):
                self.replies.setdefault(id(process), bytearray()).extend(line)
            return line

        Process.write = writing  # type: ignore[method-assign, assignment]
        Process.readline = reading  # type: ignore[method-assign, assignment]


def on_loopback(orders: list[tuple[int, bytes]]) -> bytes:
    """The orders of several agents as one agent's: endpoints renumbered, ports fixed, all of them on 127.0.0.1."""
    agents = sorted({agent for agent, _ in orders}, key=[agent for agent, _ in orders].index)
    lines = []
    for number, (agent, line) in enumerate(orders, 1):
        own = 100 * agents.index(agent)
        text = re.sub(rb"^\d+", b"%d" % number, line)
        endpoint = re.search(rb" endpoint=(\d+)", text)
        port = b"%d" % (7000 + int(endpoint[1]) % _CHECKS if endpoint else 7001)
        if endpoint:
            text = text.replace(endpoint[0], b" endpoint=%d" % (own + int(endpoint[1]) % _CHECKS))
        text = re.sub(rb" (address|bind)=\S+", rb" \1=127.0.0.1", text)
        text = re.sub(rb" token=\S+", b" token=" + TOKEN, text)
        text = re.sub(rb" port=\d+", b" port=" + port, text)
        text = re.sub(rb" interface=\S+", b" interface=lo", text)
        text = re.sub(rb" at_ns=\d+", b" at_ns=1", text)
        text = re.sub(rb" duration_ms=\d+", b" duration_ms=20", text)
        if re.match(rb"\d+ listen", text):
            text = text.rstrip(b"\n") + b" first_port=" + port + b" last_port=" + port + b"\n"
        if not re.match(rb"\d+ (clock|ping|quit)", text) or number < 6:
            lines.append(text)
    return b"".join(lines)[:_MOST_ORDERS]


def main(folder: Path, words: list[str]) -> int:
    recorder = Recorder()
    recorder.attach()
    code = exit_code(["run", *words])
    name = Path(words[0]).stem
    for kind in ("orders", "reply"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / "orders" / name).write_bytes(on_loopback(recorder.orders))
    for number, said in enumerate(list(recorder.replies.values())[:2], 1):
        whole = bytes(said[:_MOST_REPLY])
        (folder / "reply" / f"{name}-{number}").write_bytes(whole[: whole.rfind(b"\n") + 1])
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
