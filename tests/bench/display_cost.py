"""What publishing a run costs it: `python tests/bench/display_cost.py [ROUNDS]` on an idle machine.

In turn: a run that publishes nothing, one that does, one that is also watched by `rigctl display` in a terminal.
Printed are medians: processor time of the controller, start skew and goodput of its tests, that of the display.
"""

import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RUN: Final = ("run", "gigablox", "--duration", "3s", "--no-report", "--quiet")
VARIANTS: Final = ("not published", "published", "watched")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found: dict[str, list[tuple[float, float, float, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for variant in VARIANTS:
                found[variant].append(measured(variant, Path(folder)))
    print("| | controller s | start skew µs | total goodput Mbit/s | display s |\n|---|---:|---:|---:|---:|")
    for variant, rows in found.items():
        cpu, skew, goodput, drawing = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"| {variant} | {cpu:.2f} | {skew:.0f} | {goodput:.1f} | {drawing:.2f} |")


def measured(variant: str, folder: Path) -> tuple[float, float, float, float]:
    """Processor seconds of the controller, median skew and goodput, processor seconds of the display."""
    (folder / "store.db").unlink(missing_ok=True)
    place = "/nowhere" if variant == "not published" else str(folder)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "RIGCTL_STORE": str(folder / "store.db"), "RIGCTL_DISPLAY_FOLDER": place,
        "TERM": "xterm-256color",
    }  # fmt: skip
    display = shown(environment) if variant == "watched" else None
    run = subprocess.Popen([sys.executable, "-m", "rigctl", *RUN], env=environment, cwd=folder)
    cpu = spent(run)
    drawing = 0.0
    if display is not None:
        display.terminate()
        drawing = spent(display)
    command = [sys.executable, "-m", "rigctl", "export", "--format", "json", "--level", "cells"]
    rows = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    skew = statistics.median(row["start_skew_us"] for row in rows)
    return cpu, skew, statistics.median(row["goodput_mbps"] for row in rows), drawing


def shown(environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """`rigctl display` in a terminal whose output is read and thrown away."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rigctl", "display", "gigablox"]
    display = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs)
    os.close(theirs)
    threading.Thread(target=_drain, args=(ours,), daemon=True).start()
    return display


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        pass


def spent(process: "subprocess.Popen[bytes]") -> float:
    """Wait for it; its processor seconds, children not included that it did not wait for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
