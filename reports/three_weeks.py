"""Three weeks of real nights on a virtual rig in which a link gets slower, for the sample of a site.

Every night runs the code that a timer starts, with a simulated clock. Night 5: the scenario cannot be read. Night 9 is
missed. Night 12: the run is stopped (SIGSTOP) and ended at its deadline. From night 15 on, the link of pi3 has 90 % of
its rate, and a sysctl of pi3 differs.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from rigctl.nightly.commands import Commands
from rigctl.nightly.message import Message
from rigctl.nightly.night import one_night
from rigctl.nightly.schedule import state_of
from rigctl.nightly.settings import NightlySettings
from rigctl.records import Night
from rigctl.store import open_store

_SCENARIO: Final = "title: Nights\nrig: gigablox\npairs: mesh\nduration: 300ms\n"
_NIGHTS: Final = 21
_FAILED, _MISSED, _HUNG, _SLOWER = 5, 9, 12, 15
_FIRST_DUE_S: Final = 1_793_500_200.0  # 2026-11-01 02:30 UTC: night 1
_DAY_S: Final = 86_400.0
_RATE: Final = f"{round(0.9 * 984_395)}kbit"


class _SimulatedNights(Commands):
    """The commands of a night. The run of one night is stopped; messages are printed instead of being sent."""

    number = 0

    def now(self) -> float:
        """Return the time of the present night, one second after it is due."""
        return _FIRST_DUE_S + (self.number - 1) * _DAY_S + 1

    def measure(self, night: Night) -> Night:
        if self.number == _HUNG:
            threading.Thread(target=_stop_the_run, args=(self.settings.store,), daemon=True).start()
        return super().measure(night)

    def tell(self, message: Message) -> None:
        print(f"{self.number:2} {message.title}", flush=True)


def measure_nights(folder: Path) -> Path:
    """Run the nights, which takes about three minutes, and return their store in `folder`."""
    store, scenario = folder / "three-weeks.db", folder / "nights.yaml"
    store.unlink(missing_ok=True)
    given = {"scenario": str(scenario), "rig": "gigablox", "at": "02:30", "wait": 0, "deadline": "40s"}
    nights = _SimulatedNights(NightlySettings.model_validate(given | {"store": str(store)}), folder / "logs")
    _rigctl("rig", "up", "gigablox")
    try:
        with open_store(str(store)) as opened:
            state = state_of(folder / "three-weeks.json", _FIRST_DUE_S - _DAY_S / 2)
            for nights.number in (number for number in range(1, _NIGHTS + 1) if number != _MISSED):
                if nights.number == _SLOWER:
                    _slow_down_pi3()
                scenario.write_text("titel: x\n" if nights.number == _FAILED else _SCENARIO)
                one_night(nights, opened.history, state, nights.now)
    finally:
        _rigctl("rig", "down", "gigablox")
        (folder / "three-weeks.json").unlink(missing_ok=True)
    return store


def _stop_the_run(store: str) -> None:
    """Stop the run that measures into this store, 2 s after it was started."""
    while subprocess.run(["pgrep", "-f", f"run .*{store}"], stdout=subprocess.DEVNULL, check=False).returncode:
        time.sleep(0.1)
    time.sleep(2)
    subprocess.run(["pkill", "-STOP", "-f", f"run .*{store}"], check=True)


def _slow_down_pi3() -> None:
    lines = _rigctl("rig", "exec", "gigablox", "pi3", "--", "tc", "qdisc").splitlines()
    shaped = next(words for words in map(str.split, lines) if "tbf" in words)
    shaping = f"root tbf rate {_RATE} burst 128kb limit 400kb"
    change = f"tc qdisc replace dev {shaped[shaped.index('dev') + 1]} {shaping}; sysctl -qw net.ipv4.tcp_mtu_probing=1"
    _rigctl("rig", "exec", "gigablox", "pi3", "--", change)


def _rigctl(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "rigctl", *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
