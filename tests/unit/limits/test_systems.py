"""Windows and limits at nodes with FreeBSD or Windows: what their kernels report, and no setting of Linux."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import cells_of, codes, finding, texts

from rigctl.limits.hosts import WindowCause, window_cause
from rigctl.limits.rules import Diagnosis, Evidence
from rigctl.model.contract import departures
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, Condition, HostSetting, Pair, Repetition, RunInfo, host_system
from rigctl.results.evidence import of_flows
from rigctl.settings import WINDOW

KERNELS = {
    "Linux": "Linux 6.6.31 x86_64",
    "FreeBSD": "FreeBSD 14.1-RELEASE amd64",
    "Windows": "Windows 10.0.19045 windows-x86_64",
}
LINUX_ONLY = ("net.core", "net.ipv4", "ethtool", "/proc", "modprobe")
BSD = {"kern.ipc.maxsockbuf": "2097152", "net.inet.tcp.recvbuf_max": "2097152", "net.inet.tcp.sendbuf_max": "2097152"}


def measured(system: str, asked: int | None, granted: int, **sender: Any) -> tuple[RunInfo, Cell, Repetition]:
    """Return a run between two nodes of a system that grants buffers of this size, as its getsockopt reports it."""
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), window_bytes=asked)
    buffers: dict[str, Any] = {
        **{"sndbuf_bytes": granted, "rcvbuf_bytes": granted},
        "buffers_doubled": system == "Linux",
    }
    one = builders.repetition(cell, (300.0,))
    one = builders.changing_flows(one, sender=buffers | sender, receiver=buffers)
    conditions = (Condition("any", (HostSetting("sysctl", "0", "net.ipv4.tcp_window_scaling"),)),)
    facts = {
        node: {"kernel": KERNELS[system], "sysctls": BSD if system == "FreeBSD" else None} for node in ("pi1", "pi2")
    }
    info = builders.run(builders.plan([cell], conditions=conditions), facts=facts)
    return info, cell, one


@pytest.mark.parametrize(
    ("system", "granted"), [("Linux", 131_072), ("FreeBSD", 65_536), ("Windows", 65_536), ("Linux", 65_536)]
)
def test_a_window_is_what_the_kernel_grants_and_only_linux_reports_twice_as_much(system: str, granted: int) -> None:
    info, cell, one = measured(system, 65_536, granted)
    (flow,) = one.flows
    is_granted = system != "Linux" or granted == 131_072
    assert [side and side[WINDOW] for side in (flow.sender, flow.receiver)] == [65_536 if is_granted else 32_768] * 2
    assert [each.effective for each in departures(cell, one.flows)] == ([] if is_granted else ["32768"])
    assert ("window-smaller" in codes(info, [one])) == (not is_granted)


@pytest.mark.parametrize(
    ("system", "granted", "code", "named"),
    [
        ("Windows", 524_288, "window-smaller", "no more is granted on pi1 and pi2"),
        ("FreeBSD", 1_048_576, "window-bound", "kern.ipc.maxsockbuf = 2097152 on pi1"),
        ("FreeBSD", 16_384, "window-bound", "kern.ipc.maxsockbuf = 2097152 on pi1"),
        ("Linux", 425_984, "window-smaller", "net.core.wmem_max"),
    ],
)
def test_a_smaller_window_is_blamed_on_a_setting_that_its_system_has(
    system: str, granted: int, code: str, named: str
) -> None:
    info, _, one = measured(system, 4 * 1024**2, granted)
    found = finding(info, [one], code)
    assert named in found.text
    if system != "Linux":
        assert not [text for text in texts(info, [one]) for word in LINUX_ONLY if word in text]


@pytest.mark.parametrize(
    ("system", "asked", "granted", "sysctl"),
    [
        ("Linux", 65_536, 100_000, "net.core.rmem_max"),
        ("FreeBSD", 4 * 1024**2, 1_048_576, "kern.ipc.maxsockbuf"),
        ("FreeBSD", None, 2_097_152, "net.inet.tcp.recvbuf_max"),
        ("FreeBSD", None, 65_536, None),
        ("FreeBSD", 65_536, 65_536, None),
        ("Windows", 65_536, 32_768, None),
    ],
)
def test_the_sysctl_that_bounds_a_window_is_one_of_the_nodes_system(
    system: str, asked: int | None, granted: int, sysctl: str | None
) -> None:
    info, cell, one = measured(system, asked, granted)
    info = replace(info, plan=replace(info.plan, cells=(replace(cell, condition="any"),)))
    value = BSD.get(sysctl) if sysctl else None
    seen = of_flows(one.flows, 1.0)
    found = window_cause(info, cell, cell.streams[0], Evidence(**seen), Diagnosis("window", cause="receive"))
    assert found == WindowCause("receive", "pi2", granted, sysctl, value)


@pytest.mark.parametrize("system", KERNELS)
def test_a_condition_with_sysctls_of_linux_says_nothing_of_other_systems(system: str) -> None:
    info, cell, one = measured(system, 4 * 1024**2, 8 * 1024**2)
    (summary,) = cells_of(info, [replace(one, cell=cell.number)])
    assert host_system(info.facts["pi1"]) == system
    scaled = replace(cell, condition="any")
    info = replace(info, plan=replace(info.plan, cells=(scaled,)))
    (unscaled,) = cells_of(info, [one])
    expected = 65_535 if system == "Linux" else summary.streams[0].window_effective_bytes
    assert unscaled.streams[0].window_effective_bytes == expected


@pytest.mark.parametrize(("system", "share"), [("Linux", True), ("FreeBSD", False), ("Windows", False)])
def test_only_linux_tells_whether_bytes_in_flight_fill_the_send_buffer(system: str, share: bool) -> None:
    """The rule was measured on Linux; Windows sends more than SO_SNDBUF, and FreeBSD charges bytes only."""
    _, _, one = measured(system, 65_536, 65_536)
    window = CommonWindow(builders.BEGIN_NS, builders.BEGIN_NS + 10**10, 0)
    assert (of_flows(one.flows, 300.0, window).get("in_flight_sndbuf") is not None) == share


def test_without_the_time_of_a_full_send_buffer_no_window_is_blamed_for_waiting() -> None:
    """Windows counts the time without data from the program as SndLimTimeSnd (Microsoft, TCP_INFO_v1)."""
    blamed = []
    for sent_us, busy_us in ((9_000_000, 9_500_000), (None, None), (0, 9_500_000)):
        times: dict[str, Any] = {"sndbuf_limited_us": sent_us, "busy_us": busy_us, "rwnd_limited_us": 100_000}
        info, _, one = measured("Windows", None, 0, **times, advertised_window_bytes=10**7)
        (summary,) = cells_of(info, [one])
        blamed.append(summary.limit == "window")
    assert blamed == [True, False, False]
