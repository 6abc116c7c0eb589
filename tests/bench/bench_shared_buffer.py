"""Bursts through switches whose buffers are known, also those that ports share.

`python tests/bench/bench_shared_buffer.py [NAME…]`, as root, about a quarter of an hour. `rigctl run` measures nodes at
the known switch (tests/support/known_switch), a model that computes drops by the kernel's time stamps of frames, with
`length: max`. A frame uses the buffer until its last bit has left. The expectations are written here, before the first
run, and follow from the designs:

- a buffer of its own for each queue holds as many frames as have room in it;
- of a shared buffer of B frames, P ports that are busy at once have α ÷ (1 + P α) × B each (Choudhury and Hahne,
  "Dynamic queue length thresholds", 1998), in whole frames;
- no buffer may be claimed where the switch sends pause frames.

A buffer is as expected within one frame where the port drains at 2 Mbit/s or less, else within the printed error, and
at least one frame. Of a shared buffer, one frame more, as frames of several ports come in any order.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from at_known_switches import Row, run_cases
from known_switch.model import Design, Link
from known_switch.rig import Nodes, introduce, known_switch, shown
from user import User

MBIT: Final = 1_000_000
KB: Final = 1000
RATE: Final = 20 * MBIT
LARGE: Final = 1518  # bytes of a frame with its check, of 1,472 bytes of payload
SMALL: Final = 256  # … of 210 bytes
RUN_S: Final = 600.0


@dataclass(frozen=True)
class Case:
    """A switch, bursts through it, and the frames that its buffer holds for each port; None: pause frames hide it."""

    name: str
    design: Design | Mapping[str, Design]
    pairs: str
    expected: int | None
    size: int = LARGE
    shared: bool = False
    trunk: tuple[str, ...] = ()

    @property
    def within(self) -> int:
        """Return by how many frames the buffer may differ, whatever error is printed."""
        return 2 if self.shared else 1

    @property
    def designs(self) -> Mapping[str, Design]:
        return {"known": self.design} if isinstance(self.design, Design) else self.design


def switch(buffer: int, ports: str = "abcd", links: Mapping[str, Link] | None = None, **fields: Any) -> Design:
    return Design({port: Link(RATE) for port in ports} | dict(links or {}), buffer, **fields)


def slow(ports: str, rate: int) -> dict[str, Link]:
    return {port: Link(rate) for port in ports}


def own(buffer: int, drain: int, pairs: str = "a -> d", size: int = LARGE, **fields: Any) -> Case:
    """Return a switch with a buffer for each queue."""
    name = f"own {buffer // KB} kB, {size} B, {drain / MBIT:g} Mbit/s, {pairs}" + _more(fields)
    return Case(name, switch(buffer, links=slow("d", drain), **fields), pairs, buffer // size, size)


def share(buffer: int, alpha: float, drain: int, pairs: str, busy: int, size: int = LARGE) -> Case:
    """Return a switch whose ports share a buffer, with so many ports that are busy at once."""
    name = f"shared {buffer // KB} kB, α {alpha:g}, {size} B, {drain / MBIT:g} Mbit/s, {pairs}"
    expected = math.floor(alpha / (1 + busy * alpha) * buffer / size)
    receivers = "".join(sorted({pair.split()[-1] for pair in pairs.split(", ")}))
    return Case(name, switch(buffer, links=slow(receivers, drain), alpha=alpha), pairs, expected, size, shared=True)


def _more(fields: Mapping[str, Any]) -> str:
    return "".join(f", {name} {value}" for name, value in fields.items())


def trunked(buffer: int, rate: int) -> Case:
    """Return two switches whose trunk is the slow port."""
    links = {"up": Link(rate)}, {"down": Link(rate)}
    designs = {"left": switch(buffer, "ab", links[0]), "right": switch(buffer, "cd", links[1])}
    name = f"own {buffer // KB} kB, two switches, trunk {rate / MBIT:g} Mbit/s, a -> c"
    return Case(name, designs, "a -> c", buffer // LARGE, trunk=("up", "down"))


CASES: Final = (
    own(60 * KB, 2 * MBIT),
    own(30 * KB, 1 * MBIT, size=SMALL),
    own(150 * KB, 10 * MBIT),
    own(60 * KB, 2 * MBIT, "a -> d, b -> d"),
    own(60 * KB, RATE, "a -> d, b -> d"),
    own(45 * KB, 2 * MBIT, queues_at="input"),
    trunked(60 * KB, 5 * MBIT),
    share(120 * KB, 1.0, 2 * MBIT, "a -> d", 1),
    share(120 * KB, 1.0, 2 * MBIT, "a -> d, b -> c", 2),
    share(180 * KB, 1.0, 2 * MBIT, "a -> d, a -> c, a -> b", 3),
    share(90 * KB, 0.5, 1 * MBIT, "a -> d", 1),
    share(90 * KB, 0.5, 1 * MBIT, "a -> d, b -> c", 2),
    share(60 * KB, 4.0, 2 * MBIT, "a -> d", 1),
    share(60 * KB, 4.0, 2 * MBIT, "a -> d, b -> c", 2),
    share(40 * KB, 2.0, 2 * MBIT, "a -> d, b -> c", 2, size=SMALL),
    share(240 * KB, 1.0, 10 * MBIT, "a -> d, b -> c", 2),
    Case(
        "pause, buffers of their own",
        switch(200 * KB, links=slow("d", 2 * MBIT), pause=(30 * KB, 15 * KB)),
        "a -> d",
        None,
    ),
    Case(
        "pause, a shared buffer",
        switch(200 * KB, links=slow("d", 2 * MBIT), alpha=1.0, pause=(30 * KB, 15 * KB)),
        "a -> d",
        None,
    ),
    Case(
        "pause, queues at the inputs",
        switch(200 * KB, links=slow("d", 2 * MBIT), queues_at="input", pause=(30 * KB, 15 * KB)),
        "a -> d, b -> d",
        None,
    ),
)


@dataclass(frozen=True)
class Found:
    """The buffer in frames that a run claims; None where it claims none. `codes`: of all its findings."""

    frames: float | None
    error: float | None
    least: float | None
    codes: tuple[str, ...]
    late_s: float


def measured(case: Case, nodes: Nodes, user: User) -> Found:
    text = f"test: burst\npairs: [{case.pairs}]\nsize: {case.size - 46}\nlength: max\nduration: 4s\nmax_skew: 300ms\n"
    with known_switch(nodes, case.design, case.trunk) as running:
        introduce(nodes, [port for one in case.designs.values() for port in one.links if port not in case.trunk])
        found = shown(user, running, text, RUN_S)["findings"]
        late_s = running.counted()["process"]["late_s"]
    numbers = {finding["code"]: finding["numbers"] for finding in found}
    claimed, least = numbers.get("buffer-shown", {}), numbers.get("buffer-at-least", {})
    return Found(
        claimed.get("buffer_frames"),
        claimed.get("buffer_error_frames"),
        least.get("buffer_least_frames"),
        tuple(finding["code"] for finding in found),
        late_s,
    )


HEADS: Final = ("switch", "expected", "buffer", "±", "off", "as expected", "other findings")


def row_of(case: Case, found: Found) -> Row:
    others = [code for code in found.codes if code not in ("bursts", "buffer-shown", "virtual-rig")]
    rest = ", ".join(others) + (f"; the switch was late by {1e3 * found.late_s:.0f} ms" if found.late_s > 0.1 else "")
    if case.expected is None or found.frames is None:
        good = case.expected is None and found.frames is None and found.least is None
        shown = "–" if found.frames is None else f"{found.frames:.1f}"
        return good, (case.name, str(case.expected or "no claim"), shown, "–", "–", "yes" if good else "NO", rest)
    off, error = found.frames - case.expected, found.error or 0.0
    good = abs(off) <= max(case.within, error)
    numbers = (str(case.expected), f"{found.frames:.1f}", f"{error:.1f}", f"{off:+.1f}")
    return good, (case.name, *numbers, "yes" if good else "NO", rest)


def judge(case: Case, nodes: Nodes, user: User) -> Row:
    try:
        return row_of(case, measured(case, nodes, user))
    except AssertionError as error:
        return False, (case.name, str(case.expected), "", "", "", "NO", str(error)[-300:])


if __name__ == "__main__":
    run_cases("Buffers of known switches", HEADS, CASES, judge)
