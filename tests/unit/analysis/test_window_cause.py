"""Whose window is the limit, whether it was requested, and the sysctl that bounds it."""

from typing import Any

import builders
import pytest

from rigctl.analysis.limits.hosts import WindowCause, window_cause
from rigctl.model.limits.rules import Verdict
from rigctl.records import Condition, HostSetting, Pair

SCALING = "net.ipv4.tcp_window_scaling"
RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
RMEM_MAX, WMEM_MAX = "net.core.rmem_max", "net.core.wmem_max"
PAIRS = (Pair("pi1", "pi2"),)  # pi1 sends
THREE = "4096 131072 6291456"


def told(
    sysctls: dict[str, dict[str, str]] | None = None,
    *,
    asked: int | None = None,
    sndbuf: int | None = 400_000,
    rcvbuf: int | None = 400_000,
    advertised: int | None = 65_535,
    cause: str | None = None,
    sndbuf_share: float | None = None,
    parallel: int = 1,
    condition: Condition | None = None,
) -> WindowCause:
    """Return the cause of a test from pi1 to pi2 on nodes with these sysctls."""
    named = condition.name if condition else None
    cell = builders.cell(pairs=PAIRS, window_bytes=asked, mss=None, parallel=parallel, condition=named)
    plan = builders.plan([cell], conditions=(condition,) if condition else ())
    info = builders.run(plan, facts={node: {"sysctls": (sysctls or {}).get(node, {})} for node in plan.links})
    flows = [
        builders.changing(
            flow,
            sender={"sndbuf_bytes": sndbuf, "advertised_window_bytes": advertised},
            receiver={"rcvbuf_bytes": rcvbuf},
        )
        for flow in builders.flows(cell, (100.0,))
    ]
    return window_cause(info, cell, cell.streams[0], flows, Verdict("window", cause=cause), sndbuf_share)


@pytest.mark.parametrize(
    ("known", "found"),
    [
        # Kernel-tuned: the third value bounds it, from 95 % of it on.
        ({"rcvbuf": 6_291_456}, WindowCause("receive", "pi2", 6_291_456, False, RMEM, THREE)),
        ({"rcvbuf": 5_976_884}, WindowCause("receive", "pi2", 5_976_884, False, RMEM, THREE)),
        ({"rcvbuf": 5_976_883}, WindowCause("receive", "pi2", 5_976_883, False)),
        ({"rcvbuf": None}, WindowCause("receive", "pi2", None, False)),
        ({"sndbuf": 6_291_456, "cause": "send"}, WindowCause("send", "pi1", 6_291_456, False, WMEM, THREE)),
        ({"sndbuf_share": 0.51}, WindowCause("send", "pi1", 400_000, False)),
        ({"sndbuf_share": 0.5}, WindowCause("receive", "pi2", 400_000, False)),
        ({"sndbuf_share": 1.0, "sndbuf": 6_291_456}, WindowCause("send", "pi1", 6_291_456, False, WMEM, THREE)),
        # Requested: granted twice over, or cut by the kernel.
        ({"asked": 200_000}, WindowCause("receive", "pi2", 400_000, True)),
        ({"asked": 200_001}, WindowCause("receive", "pi2", 400_000, False, RMEM_MAX, "212992")),
        ({"asked": 200_001, "rcvbuf": None}, WindowCause("receive", "pi2", None, True)),
        ({"asked": 300_000, "cause": "send"}, WindowCause("send", "pi1", 400_000, False, WMEM_MAX, "212992")),
    ],
)
def test_the_end_and_the_sysctl_that_bound_a_window(known: dict[str, Any], found: WindowCause) -> None:
    node = {RMEM: THREE, WMEM: THREE, RMEM_MAX: "212992", WMEM_MAX: "212992"}
    assert told({"pi1": node, "pi2": node}, **known) == found


@pytest.mark.parametrize("value", ["", "4096 131072", "4096 131072 many"])
def test_a_value_that_is_not_three_numbers_bounds_nothing(value: str) -> None:
    assert told({"pi2": {RMEM: value}}, rcvbuf=6_291_456) == WindowCause("receive", "pi2", 6_291_456, False)


def test_the_condition_of_the_test_comes_before_the_value_of_the_node() -> None:
    small = Condition("small", (HostSetting("sysctl", "4096 8192 20000", RMEM),))
    found = told({"pi2": {RMEM: THREE}}, rcvbuf=20_000, condition=small)
    assert found == WindowCause("receive", "pi2", 20_000, False, RMEM, "4096 8192 20000")


@pytest.mark.parametrize(
    ("off", "known", "node"),
    [
        ("pi2", {}, "pi2"),
        ("pi1", {}, "pi1"),  # off at one end is off for both
        ("pi2", {"rcvbuf": 131_070, "parallel": 2}, "pi2"),
        ("pi2", {"rcvbuf": 131_069}, None),  # the buffer is smaller than the header's largest window
        ("pi2", {"rcvbuf": None}, None),
        ("pi2", {"advertised": 65_536}, None),
        ("pi2", {"advertised": None}, None),
    ],
)
def test_a_window_without_scaling_is_bounded_by_the_header(off: str, known: dict[str, Any], node: str | None) -> None:
    found = told({off: {SCALING: "0"}}, **known)
    assert (found.sysctl, found.side, found.requested) == (SCALING if node else None, "receive", False)
    assert found.buffer_bytes == known.get("rcvbuf", 400_000)
    if node is not None:
        assert (found.node, found.value) == (node, "0")


def test_a_send_buffer_is_the_cause_with_scaling_off_too() -> None:
    assert told({"pi2": {SCALING: "0"}}, cause="send") == WindowCause("send", "pi1", 400_000, False)
