"""Whether each class waits for what stands before it: the queue it shares, or a packet where it goes first.

`python tests/bench/bench_classes.py [ROUNDS]`: datagrams of two classes over a shaper of 19 Mbit/s with two bands, as
in docs/how-to/qos.md. Agreed: within 15 % of queue ÷ rate; the class that goes first waits for less than two packets.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import run_rows, table, timed

SHAPED_BPS: Final = 19e6
QUEUE_BYTES: Final = 100_000
VOICE_BPS: Final = 1e6 * (200 + 14 + 28) / 200
"""What voice takes of the shaper: payload and headers, as the kernel counts them."""
PACKET_MS: Final = 1514 * 8e3 / SHAPED_BPS
RIG: Final = "title: one slow link\nvirtual: namespaces\nlinks: {rate: 20M, mtu: 1500}\nnodes: {a: , b: }\n"
SCENARIO: Final = f"""
rig: RIG
pairs: [a -> b]
duration: 3s
omit: 1s
max_skew: 1s
latency: true
classes:
  voice: {{test: udp, rate: {round(VOICE_BPS * 200 / 242)}, size: 200, dscp: EF}}
  bulk: {{test: udp, rate: 30M}}
"""
BANDS: Final = f"""
set -e
tc qdisc replace dev eth0 root handle 1: htb default 20 r2q 100
tc class add dev eth0 parent 1: classid 1:1 htb rate {SHAPED_BPS:.0f}bit burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil {SHAPED_BPS:.0f}bit prio 0 burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 17mbit ceil {SHAPED_BPS:.0f}bit prio 1 burst 3k cburst 3k
tc qdisc add dev eth0 parent 1:20 bfifo limit {QUEUE_BYTES}
"""
EXPEDITED: Final = "tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10"
SHARED_MS: Final = QUEUE_BYTES * 8e3 / SHAPED_BPS
BEHIND_MS: Final = QUEUE_BYTES * 8e3 / (SHAPED_BPS - VOICE_BPS)


def measured(folder: Path, rounds: int) -> Iterator[tuple[object, ...]]:
    """Yield a row for each class of each run: its rise under load, what it should be, and whether it is."""
    rig = folder / "rig.yaml"
    rig.write_text(RIG)
    for _ in range(rounds):
        timed("rig", "up", str(rig))
        try:
            for band, command, wanted_ms in (
                ("one for both", BANDS, {"voice": SHARED_MS, "bulk": SHARED_MS}),
                ("one for EF", EXPEDITED, {"voice": None, "bulk": BEHIND_MS}),
            ):
                timed("rig", "exec", str(rig), "a", "--", command)
                for row in run_rows(folder, SCENARIO.replace("RIG", str(rig))):
                    rise_ms, wanted = row["latency_rise_us"] / 1e3, wanted_ms[row["class"]]
                    good = rise_ms < 2 * PACKET_MS if wanted is None else abs(rise_ms / wanted - 1) <= 0.15
                    bound = f"< {2 * PACKET_MS:.2f}" if wanted is None else f"{wanted:.1f}"
                    yield band, row["class"], f"{rise_ms:.2f}", bound, "yes" if good else "NO"
        finally:
            timed("rig", "down", str(rig))


def main(rounds: int) -> None:
    heads = ("band", "class", "rise, ms", "queue / rate, ms", "within")
    with tempfile.TemporaryDirectory() as name:
        table(f"Waits of two classes; load {os.getloadavg()[0]:.1f}", heads, measured(Path(name), rounds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
