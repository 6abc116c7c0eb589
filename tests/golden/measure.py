"""Measure the stored runs that the golden pages are printed from: `python tests/golden/measure.py [NAME…]`.

Needs a quiet machine for about five minutes. Only a change that makes the stored runs unreadable, or a new kind of
test, is a reason to measure them again: `make golden` prints their pages anew.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
RUNS: Final[dict[str, tuple[str, ...]]] = {
    "streams": ("gigablox", "--duration", "1s"),
    "requests": ("services", "--duration", "600ms", "--repeat", "2"),
    "bursts": ("port-buffer", "--duration", "1s", "--set", "length=20,80,100,200", "--set", "size=1472"),
    "connect": ("connections", "--duration", "500ms", "--repeat", "2"),
    "group": ("multicast", "--duration", "4s", "--repeat", "2"),
    "iperf3": ("gigablox", "--duration", "1s", "--set", "engine=iperf3"),
    "matrix": ("das2-quick", "--duration", "600ms", "--set", "pairs=1,4,12", "--set", "parallel=1,4"),
    "soak": ("das2-soak", "--duration", "3s"),
    "pingpong": ("nettest-pingpong", "--set", "iterations=40"),
    "blast": ("nettest-blast", "--repeat", "2"),
    "distance": ("stratus", "--duration", "2s"),
    "files": ("stratus-put", "--set", "size=5054968"),
    "datagrams": ("udp", "--duration", "1s"),
    "search": ("rfc2544", "--duration", "1s", "--set", "size=466,1472"),
    "mesh": ("10gbe-mesh", "--duration", "1s", "--repeat", "1"),
    "flows": ("10gbe-flows", "--duration", "500ms"),
    "latency": ("gigablox", "--duration", "2s", "--set", "latency=true"),
    "classes": ("qos", "--duration", "2s"),
    "roles": ("head-of-line", "--duration", "8s"),
    "fan-in": ("incast", "--duration", "2s", "--set", "omit=0s"),
    "parts": ("parts.yaml",),
    "against": ("gigablox", "--duration", "500ms", "--repeat", "4", "--against", "congestion=bbr"),
    "expectations": ("expect.yaml",),
    "before": ("twice.yaml",),
    "after": ("twice.yaml", "--set", "mss=536"),
    "invalid": ("twice.yaml", "--repeat", "2", "--set", "max_skew=1us"),
    "failed": ("stratus-put", "--set", "folder=/nowhere"),
    "interrupted": ("gigablox", "--duration", "2s"),
}
INTERRUPTED_AFTER_S: Final = 9.0
DEADLINE_S: Final = 600.0


def rigctl(store: Path, *words: str, interrupt_after_s: float | None = None) -> int:
    """Run a command on a store; send it SIGINT after a while. Return its exit code."""
    environment = {**os.environ, "RIGCTL_STORE": str(store)}
    command = [sys.executable, "-m", "rigctl", *words]
    process = subprocess.Popen(command, env=environment, cwd=HERE / "scenarios")
    try:
        if interrupt_after_s is not None:
            time.sleep(interrupt_after_s)
            process.send_signal(signal.SIGINT)
        return process.wait(DEADLINE_S)
    finally:
        process.kill()


def main() -> None:
    """Measure the runs named, or all of them, and write each to runs/NAME.rigctl."""
    for name in sys.argv[1:] or RUNS:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "store.db")
            late = INTERRUPTED_AFTER_S if name == "interrupted" else None
            code = rigctl(store, "run", *RUNS[name], "--no-report", "--quiet", interrupt_after_s=late)
            rigctl(store, "export", "--format", "rigctl", "-o", str(HERE / "runs" / f"{name}.rigctl"))
        print(f"{name}: exit code {code}")


if __name__ == "__main__":
    main()
