"""Figures on the processors of both ends while a test ran. `rigctl.analysis` computes their values."""

from typing import Final

from rigctl.base.values import most
from rigctl.figures.figure import TCP_AND_UDP, Figure
from rigctl.settings.setting import MEASURED


def _busy(name: str, *, meaning: str, kinds: tuple[str, ...] = ()) -> Figure[float]:
    return Figure(
        name=name,
        unit="%",
        levels=MEASURED,
        meaning=meaning,
        digits=1,
        over_streams=most,
        kinds=kinds,
    )


PROCESSOR_FIGURES: Final = (
    _busy(
        "cpu_source_pct",
        meaning="busy share of all CPUs of the sender's node, softirq included; empty if measured for less than 0.2 s",
        kinds=TCP_AND_UDP,
    ),
    _busy(
        "cpu_destination_pct",
        meaning="busy share of all CPUs of the receiver's node, as in cpu_source_pct",
        kinds=TCP_AND_UDP,
    ),
    _busy("busiest_cpu_source_pct", meaning="busy share of the busiest CPU of the sender's node, as in cpu_source_pct"),
    _busy("busiest_cpu_destination_pct", meaning="busy share of the busiest CPU of the receiver's node"),
    _busy(
        "other_cpu_source_pct",
        meaning="share of the CPUs of the sender's node (on a virtual rig: of the machine) that other programs took, "
        "without agents and interrupts; empty if measured for less than 0.2 s",
    ),
    _busy("other_cpu_destination_pct", meaning="share of the CPUs of the receiver's node that other programs took"),
    _busy(
        "agent_cpu_source_pct",
        meaning="CPU time of the sender's agent, as a share of what its threads, one for each flow, could have used",
    ),
    _busy("agent_cpu_destination_pct", meaning="CPU time of the receiver's agent, as in agent_cpu_source_pct"),
)
"""Figures of processors, in the order of the column table."""
