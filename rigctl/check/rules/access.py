"""Rules on access to nodes: SSH, lock, agent, rights, clock."""

from collections.abc import Iterator
from typing import Final

from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import as_root, found, node
from rigctl.findings import Finding, Severity

CLOCK_AHEAD_S: Final = 1.0
"""Beyond this, logs and captures of two nodes are hard to compare."""
SKEW_S: Final = 0.010
"""Bound of the start skew without a scenario."""
UNMADE: Final = (
    "firmware, ring sizes, interrupt coalescing, CPU governor and throttling are not checked on FreeBSD, and whether "
    "an ICMP message answers its datagrams is not known."
)
_REACHED: Final = {
    "ssh": "reached by SSH, with known host keys",
    "srun": "reached by srun, in its allocation",
    "local": "this machine, reached without SSH",
}


def reached(seen: Seen) -> Iterator[Finding]:
    """Check the transport (SSH with a known host key), the lock and the data address."""
    for each in seen.nodes.values():
        if each.failure is not None and each.failure.stage != "agent":
            yield found(Severity.ERROR, node(each.name), each.failure.text)
    for transport, how in _REACHED.items():
        good = [
            each.name
            for each in seen.nodes.values()
            if each.node.transport == transport and (each.failure is None or each.failure.stage == "agent")
        ]
        if good:
            yield found(Severity.OK, node(*good), f"{how}; not in use by another run.")


def agent(seen: Seen) -> Iterator[Finding]:
    """Check that the agent was uploaded to a folder with room and without noexec, and runs."""
    for each in seen.nodes.values():
        if each.failure is not None and each.failure.stage == "agent":
            yield found(Severity.ERROR, node(each.name), f"the agent does not run: {each.failure.text}")
        if each.note is not None:
            remedy = "A home that is mounted noexec or full is passed over; nothing has to be done."
            yield found(Severity.NOTE, node(each.name), f"{each.note}.", remedy)
        if each.unrestored is not None:
            text = f"host settings of an earlier run could not be put back: {each.unrestored}."
            yield found(Severity.WARNING, node(each.name), text, "Set them by hand, or restart the node.")
    good = [each for each in seen.nodes.values() if each.machine is not None]
    for machine in sorted({str(each.machine) for each in good}):
        names = [each.name for each in good if each.machine == machine]
        yield found(Severity.OK, node(*names), f"the agent for {machine} runs.")


def rights(seen: Seen) -> Iterator[Finding]:
    """Check for root's rights if conditions or captures need them. With `sudo: true` the agent's start has used it."""
    plan = seen.plan
    if plan is None:
        return
    needs = [f"condition {condition.name}" for condition in plan.conditions if condition.settings]
    needs += ["captures"] if any(cell.capture for cell in plan.cells) else []
    if not needs:
        return
    for each in seen.reached():
        if each.as_root is False:
            remedy = f"Log in as root, or give node {each.name} `sudo: true` in the rig file."
            yield found(Severity.ERROR, node(each.name), f"{', '.join(needs)} cannot be had without root.", remedy)
    good = [each.name for each in seen.reached() if each.as_root]
    if good:
        yield found(Severity.OK, node(*good), f"root's rights for {', '.join(needs)}.")


def unmade(seen: Seen) -> Iterator[Finding]:
    """Name what is not checked on FreeBSD."""
    names = [each.name for each in seen.reached() if each.is_freebsd]
    if names:
        yield found(Severity.NOTE, node(*names), UNMADE)


def clock(seen: Seen) -> Iterator[Finding]:
    """Check the wall clock, and the precision of the clock that starts the flows."""
    bound_s = seen.plan.max_skew_s if seen.plan is not None else SKEW_S
    good = []
    for each in seen.nodes.values():
        ahead_s = _surely_ahead_s(each)
        if ahead_s is not None and abs(ahead_s) >= CLOCK_AHEAD_S:
            way = "ahead of" if ahead_s > 0 else "behind"
            text = (
                f"its clock is {abs(ahead_s):.1f} s {way} the controller's. Measurements are not affected; "
                "times in its logs are."
            )
            remedy = as_root(each, "clock")
            yield found(Severity.WARNING, node(each.name), text, remedy, numbers={"clock_ahead_s": round(ahead_s, 3)})
        elif ahead_s is not None:
            good.append(each)
        if each.clock_error_s is not None and each.clock_error_s > bound_s:
            text = (
                f"its clock is known to ±{each.clock_error_s * 1e3:.1f} ms only (the SSH connection is slow); flows "
                f"are to start within {bound_s * 1e3:g} ms of each other."
            )
            remedy = "Raise max_skew in the scenario, or run rigctl nearer to the rig."
            numbers = {"clock_error_ms": round(each.clock_error_s * 1e3, 3)}
            yield found(Severity.WARNING, node(each.name), text, remedy, numbers)
    if good:
        worst_s = max(abs(_surely_ahead_s(each) or 0.0) for each in good)
        numbers = {"clock_ahead_s": round(worst_s, 3)}
        yield found(Severity.OK, node(*(each.name for each in good)), "clocks agree within a second.", numbers=numbers)


def _surely_ahead_s(seen: NodeSeen) -> float | None:
    """Return the least time that its clock is ahead (negative: behind); the time of the reading is not exact."""
    if seen.clock_ahead_s is None:
        return None
    low, high = seen.clock_ahead_s
    return 0.0 if low <= 0 <= high else low if low > 0 else high
