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
THREE = "4096 131072 6291456"


USUAL: dict[str, Any] = {
    **{"sndbuf": 400_000, "rcvbuf": 400_000, "advertised": 65_535, "sndbuf_share": None},
    **{"asked": None, "cause": None, "parallel": 1, "condition": None},
}
ALL = {RMEM: THREE, WMEM: THREE, RMEM_MAX: "212992", WMEM_MAX: "212992"}
BOTH = {"pi1": ALL, "pi2": ALL}
UNSCALED = {"pi2": {SCALING: "0"}}
SMALL_VALUE = "4096 8192 20000"
SMALL = Condition("small", (HostSetting("sysctl", SMALL_VALUE, RMEM),))


@pytest.mark.parametrize(
    ("sysctls", "known", "found"),
    [
        # Kernel-tuned: the third value bounds it, from 95 % of it on.
        (BOTH, {"rcvbuf": 6_291_456}, WindowCause("receive", "pi2", 6_291_456, False, RMEM, THREE)),
        (BOTH, {"rcvbuf": 5_976_884}, WindowCause("receive", "pi2", 5_976_884, False, RMEM, THREE)),
        (BOTH, {"rcvbuf": 5_976_883}, WindowCause("receive", "pi2", 5_976_883, False)),
        (BOTH, {"rcvbuf": None}, WindowCause("receive", "pi2", None, False)),
        (BOTH, {"sndbuf": 6_291_456, "cause": "send"}, WindowCause("send", "pi1", 6_291_456, False, WMEM, THREE)),
        (BOTH, {"sndbuf_share": 0.51}, WindowCause("send", "pi1", 400_000, False)),
        (BOTH, {"sndbuf_share": 0.5}, WindowCause("receive", "pi2", 400_000, False)),
        (BOTH, {"sndbuf_share": 1.0, "sndbuf": 6_291_456}, WindowCause("send", "pi1", 6_291_456, False, WMEM, THREE)),
        # Requested: granted twice over, or cut by the kernel.
        (BOTH, {"asked": 200_000}, WindowCause("receive", "pi2", 400_000, True)),
        (BOTH, {"asked": 200_001}, WindowCause("receive", "pi2", 400_000, False, RMEM_MAX, "212992")),
        (BOTH, {"asked": 200_001, "rcvbuf": None}, WindowCause("receive", "pi2", None, True)),
        (BOTH, {"asked": 300_000, "cause": "send"}, WindowCause("send", "pi1", 400_000, False, WMEM_MAX, "212992")),
        # A value that is not three numbers bounds nothing; the condition of the test comes before that of the node.
        ({"pi2": {RMEM: ""}}, {"rcvbuf": 6_291_456}, WindowCause("receive", "pi2", 6_291_456, False)),
        ({"pi2": {RMEM: "4096 131072"}}, {"rcvbuf": 6_291_456}, WindowCause("receive", "pi2", 6_291_456, False)),
        ({"pi2": {RMEM: "4096 131072 many"}}, {"rcvbuf": 6_291_456}, WindowCause("receive", "pi2", 6_291_456, False)),
        (BOTH, {"rcvbuf": 20_000, "condition": SMALL}, WindowCause("receive", "pi2", 20_000, False, RMEM, SMALL_VALUE)),
        # A window without scaling is bounded by the header; off at one end is off for both.
        (UNSCALED, {}, WindowCause("receive", "pi2", 400_000, False, SCALING, "0")),
        ({"pi1": {SCALING: "0"}}, {}, WindowCause("receive", "pi1", 400_000, False, SCALING, "0")),
        (UNSCALED, {"rcvbuf": 131_070, "parallel": 2}, WindowCause("receive", "pi2", 131_070, False, SCALING, "0")),
        (
            UNSCALED,
            {"rcvbuf": 131_069},
            WindowCause("receive", "pi2", 131_069, False),
        ),  # smaller than the header's most
        (UNSCALED, {"rcvbuf": None}, WindowCause("receive", "pi2", None, False)),
        (UNSCALED, {"advertised": 65_536}, WindowCause("receive", "pi2", 400_000, False)),
        (UNSCALED, {"advertised": None}, WindowCause("receive", "pi2", 400_000, False)),
        (UNSCALED, {"cause": "send"}, WindowCause("send", "pi1", 400_000, False)),
    ],
)
def test_the_end_and_the_sysctl_that_bound_a_window(
    sysctls: dict[str, dict[str, str]], known: dict[str, Any], found: WindowCause
) -> None:
    known = USUAL | known
    condition = known["condition"]
    fields = {"window_bytes": known["asked"], "parallel": known["parallel"], "condition": condition and condition.name}
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), mss=None, **fields)
    plan = builders.plan([cell], conditions=(condition,) if condition else ())
    info = builders.run(plan, facts={node: {"sysctls": sysctls.get(node, {})} for node in plan.links})
    sender = {"sndbuf_bytes": known["sndbuf"], "advertised_window_bytes": known["advertised"]}
    receiver = {"rcvbuf_bytes": known["rcvbuf"]}
    flows = [builders.changing(flow, sender, receiver) for flow in builders.flows(cell, (100.0,))]
    verdict = Verdict("window", cause=known["cause"])
    assert window_cause(info, cell, cell.streams[0], flows, verdict, known["sndbuf_share"]) == found
