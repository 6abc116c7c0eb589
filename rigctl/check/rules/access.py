"""Rules on access to nodes: SSH, lock, agent, rights, clock."""

from collections.abc import Iterator
from typing import Final

from rigctl.check.records import NodeState, RigState
from rigctl.check.rules.findings import as_root, error, fine, note, warning
from rigctl.findings import Finding

CLOCK_AHEAD_S: Final = 1.0
"""Beyond this, logs and captures of two nodes are hard to compare."""
SKEW_S: Final = 0.010
"""Bound of the start skew without a scenario."""
UNCHECKED_ON_FREEBSD: Final = (
    "socket buffers, congestion control, the card and the processor are not checked on FreeBSD, and whether an ICMP "
    "message answers its datagrams is not known."
)
_REACHED: Final = {
    "ssh": "reached by SSH, with known host keys",
    "srun": "reached by srun, in its allocation",
    "local": "this machine, reached without SSH",
}


def reached(state: RigState) -> Iterator[Finding]:
    """Check the transport (SSH with a known host key), the lock and the data address."""
    failed = [each for each in state.nodes.values() if each.failure is not None and each.failure.stage != "agent"]
    yield from (error(each, each.failure.text) for each in failed if each.failure is not None)
    good = [each for each in state.nodes.values() if each not in failed]
    for transport, how in _REACHED.items():
        names = (each.name for each in good if each.node.transport == transport)
        yield from fine(names, f"{how}; not in use by another run.")


def agent(state: RigState) -> Iterator[Finding]:
    """Check that the agent was uploaded to a folder with room and without noexec, and runs."""
    for each in state.nodes.values():
        if each.failure is not None and each.failure.stage == "agent":
            yield error(each, f"the agent does not run: {each.failure.text}")
        if each.note is not None:
            remedy = "A home that is mounted noexec or full is passed over; nothing has to be done."
            yield note(each, f"{each.note}.", remedy)
        if each.unrestored is not None:
            text = f"host settings of an earlier run could not be put back: {each.unrestored}."
            yield warning(each, text, "Set them by hand, or restart the node.")
    machines = {each.name: each.machine for each in state.nodes.values() if each.machine is not None}
    for machine in sorted(set(machines.values())):
        yield from fine((name for name, own in machines.items() if own == machine), f"the agent for {machine} runs.")


def rights(state: RigState) -> Iterator[Finding]:
    """Check for root's rights if conditions or captures need them. With `sudo: true` the agent's start has used it."""
    conditions = state.plan.conditions if state.plan is not None else ()
    needs = [f"condition {condition.name}" for condition in conditions if condition.settings]
    needs += ["captures"] if any(cell.capture for cell in state.cells()) else []
    for each in state.reached() if needs else ():
        if each.as_root is False:
            remedy = f"Log in as root, or give node {each.name} `sudo: true` in the rig file."
            yield error(each, f"{', '.join(needs)} cannot be had without root.", remedy)
    good = (each.name for each in state.reached() if needs and each.as_root)
    yield from fine(good, f"root's rights for {', '.join(needs)}.")


def conditions(state: RigState) -> Iterator[Finding]:
    """Check that each node has what the conditions set, and takes the values that it can judge without a change."""
    for each in state.nodes.values():
        yield from (error(each, f"{text}.") for text in each.refused)


def unchecked_on_freebsd(state: RigState) -> Iterator[Finding]:
    """Name what is not checked on FreeBSD."""
    yield from (note(each, UNCHECKED_ON_FREEBSD) for each in state.reached() if each.is_freebsd)


def clock(state: RigState) -> Iterator[Finding]:
    """Check the wall clock, and the precision of the clock that starts the flows."""
    bound_s = state.plan.max_skew_s if state.plan is not None else SKEW_S
    good = {}
    for each in state.nodes.values():
        ahead_s = _surely_ahead_s(each)
        if ahead_s is not None and abs(ahead_s) < CLOCK_AHEAD_S:
            good[each.name] = abs(ahead_s)
        elif ahead_s is not None:
            text = (
                f"its clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} the controller's. "
                "Measurements are not affected; times in its logs are."
            )
            yield warning(each, text, as_root(each, "clock"), clock_ahead_s=round(ahead_s, 3))
        if each.clock_error_s is not None and each.clock_error_s > bound_s:
            text = (
                f"its clock is known to ±{each.clock_error_s * 1e3:.1f} ms only (the SSH connection is slow); flows "
                f"are to start within {bound_s * 1e3:g} ms of each other."
            )
            remedy = "Raise max_skew in the scenario, or run rigctl nearer to the rig."
            yield warning(each, text, remedy, clock_error_ms=round(each.clock_error_s * 1e3, 3))
    worst_s = max(good.values(), default=0.0)
    yield from fine(good, "clocks agree within a second.", clock_ahead_s=round(worst_s, 3))


def _surely_ahead_s(state: NodeState) -> float | None:
    """Return the least time that its clock is ahead (negative: behind); the time of the reading is not exact."""
    if state.clock_ahead_s is None:
        return None
    low, high = state.clock_ahead_s
    return 0.0 if low <= 0 <= high else low if low > 0 else high
