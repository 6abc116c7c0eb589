"""Runs three weeks of real nights on a virtual rig in which a link gets slower, and prints each night's message.

`python tests/bench/bench_three_weeks.py [--keep STORE]`, about three minutes. Every night runs the code that a timer
starts (`nightly.commands`), with a simulated clock. Night 5: the scenario cannot be read. Night 9 is missed. Night 12:
the run is stopped (SIGSTOP) and ended at its deadline. From night 15 on, the link of pi3 has 90 % of its rate, and a
sysctl of pi3 differs.
"""

import json
import os
import shutil
import signal
import tempfile
import threading
import time as clock
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from bench import command, kept_up, timed
from processes import all_commands

from rigctl.nightly.commands import Commands
from rigctl.nightly.message import Message
from rigctl.nightly.night import Nightly, one_night
from rigctl.nightly.schedule import state_of
from rigctl.nightly.settings import NightlySettings
from rigctl.records import Night
from rigctl.store import open_store

SCENARIO: Final = "title: Nights\nrig: gigablox\npairs: mesh\nduration: 300ms\n"
NIGHTS: Final = 21
FAILED, MISSED, HUNG, SLOWER = 5, 9, 12, 15
FIRST_DUE_S: Final = 1_793_500_200.0  # 2026-11-01 02:30 UTC: night 1
DAY_S: Final = 86_400.0
RATE: Final = f"{round(0.9 * 984_395)}kbit"


@dataclass
class Lab(Commands):
    """The commands of a night with a simulated clock. Messages are kept instead of being sent."""

    number: int = 0
    told: list[Message] = field(default_factory=list)

    def clock(self) -> float:
        return FIRST_DUE_S + (self.number - 1) * DAY_S + 1

    def measure(self, night: Night) -> Night:
        if self.number == HUNG:
            threading.Thread(target=_stop_the_run, args=(self.settings.store,), daemon=True).start()
        return super().measure(night)

    def tell(self, message: Message) -> None:
        self.told.append(message)


def _stop_the_run(store: str) -> None:
    """Stop the process that measures into this store by SIGSTOP, 2 s after its start."""
    for _ in range(200):
        clock.sleep(0.1)
        for pid, words in all_commands():
            if {"run", "--quiet", store} <= set(words.split()):
                clock.sleep(2)
                os.kill(pid, signal.SIGSTOP)
                return


def on_pi3(*words: str) -> str:
    return timed("rig", "exec", "gigablox", "pi3", "--", *words).output


def slower() -> None:
    at = next(words for words in (line.split() for line in on_pi3("tc", "qdisc").splitlines()) if "tbf" in words)
    device = at[at.index("dev") + 1]
    on_pi3("tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", RATE, "burst", "128kb", "limit", "400kb")
    on_pi3("sysctl", "-qw", "net.ipv4.tcp_mtu_probing=1")


def main(keep: Path | None = None) -> None:
    with tempfile.TemporaryDirectory() as text, kept_up("gigablox"):
        folder = Path(text)
        (folder / "nights.yaml").write_text(SCENARIO)
        given = {"scenario": str(folder / "nights.yaml"), "rig": "gigablox", "at": "02:30"}
        settings = NightlySettings.model_validate(
            {**given, "store": str(folder / "store.db"), "wait": 0, "deadline": "40s"}
        )
        nightly = Nightly("nights", "gigablox", time(2, 30), ZoneInfo("UTC"))
        lab = Lab(settings, folder / "logs")
        with open_store(settings.store) as store:
            for lab.number in (number for number in range(1, NIGHTS + 1) if number != MISSED):
                if lab.number == SLOWER:
                    slower()
                (folder / "nights.yaml").write_text("titel: x\n" if lab.number == FAILED else SCENARIO)
                state = state_of(folder / "state.json", FIRST_DUE_S - DAY_S / 2)
                began_s, before = clock.monotonic(), len(lab.told)
                done = one_night(nightly, store.history, state, lab, lab.clock)
                title = lab.told[-1].title if len(lab.told) > before else ""
                took_s = clock.monotonic() - began_s
                print(f"{lab.number:2} {done.night.outcome!s:8} {took_s:5.1f} s  {title}", flush=True)
        if keep:
            shutil.copy(settings.store, keep)
        print("\n" + "\n---\n".join(message.markdown for message in lab.told))
        judged = timed("regress", "--format", "json", store=Path(settings.store), codes=(0, 1))
        for change in json.loads(judged.output)["changes"]:
            print(change["subject"]["name"], change["change_pct"], change["since"], change["facts"])


if __name__ == "__main__":
    command(__doc__, main)
