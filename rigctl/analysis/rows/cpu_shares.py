"""Shares of processors, in per cent, from the CPU times of a node; `None` where they are not known."""

from typing import Final

from rigctl.records import NodeUsage

LEAST_SPAN_US: Final = 200_000
"""/proc/stat counts ticks of 10 ms: in a shorter time one tick is more than 5 %, in 4 ms it would be 250 %."""


def cpu_pct(usage: NodeUsage | None) -> float | None:
    if usage is None or usage.node_busy_us is None or not usage.cpus:
        return None
    return _ticks_pct(usage.node_busy_us / usage.cpus, usage.span_us)


def busiest_pct(usage: NodeUsage | None) -> float | None:
    return None if usage is None or usage.busiest_cpu_us is None else _ticks_pct(usage.busiest_cpu_us, usage.span_us)


def others_pct(usage: NodeUsage | None, run_us: float | None) -> float | None:
    """What the run did not take. Ticks may charge a softirq to the process that it interrupted, too: never below 0."""
    if usage is None or usage.node_busy_us is None or not usage.cpus or run_us is None:
        return None
    return _ticks_pct(max(0.0, usage.node_busy_us - run_us) / usage.cpus, usage.span_us)


def _ticks_pct(busy_us: float, span_us: int | None) -> float | None:
    """Of `span_us`; unknown of a short one. What the rounding of ticks adds beyond 100 % of a longer one is cut off."""
    return min(100.0, 100 * busy_us / span_us) if span_us and span_us >= LEAST_SPAN_US else None


def agent_pct(usage: NodeUsage | None, threads: int) -> float | None:
    if usage is None or usage.agent_cpu_us is None or not usage.span_us or not usage.cpus or not threads:
        return None
    return 100 * usage.agent_cpu_us / (usage.span_us * min(threads, usage.cpus))
