"""The rules that name a limit: each with evidence that was measured where that limit was injected."""

from typing import Any

import pytest

from rigctl.limits.rules import RULES, Diagnosis, Evidence, combine, diagnose, pool_evidence

SENDS: dict[str, Any] = {
    **{"goodput_mbps": 300.0, "efficiency": 0.3, "held_share": 0.0, "sending_share": 1.0, "halves": True},
    **{"in_flight_share": 0.05, "in_flight_cwnd": 0.9, "in_flight_sndbuf": 0.05, "window_share": 0.01},
    **{"rtt_growth": 1.02, "queue_growth": 1.0, "queue_ms": 0.0, "window_bytes": 3e6, "lost_share": 0.0},
    **{"variation": 0.02, "quota_sender": 0.0, "quota_receiver": 0.0, "larger_frames": 1.0},
}
"""A sender with data and open windows, over a link that is not full and a path without a queue or losses."""


def seen(**values: Any) -> Evidence:
    return Evidence(**(SENDS | values))


FILLED = {"in_flight_share": 0.98, "held_share": 0.4}
BUFFER = {"in_flight_sndbuf": 1.0, "in_flight_cwnd": 0.4}
SHARED = {"efficiency": 0.48, "shared_share": 0.96, "shared_link": "to far"}
STANDING = {"efficiency": 0.95, "queue_ms": 5.0, "queue_growth": 10.0, "shared_share": 0.99, "shared_link": "to b"}
FULL = {"in_flight_share": 1.03, "held_share": 0.98, "variation": 0.09}
NEAR = {"rtt_min_ms": 0.01}
MARKED = {"marked_share": 0.03, "marks_allow": 0.7}
DATAGRAMS = {"datagram_evenness": 0.1, "lost_share": 0.1, "halves": None}
OTHERS = {"other_share": 0.4, "other_mbps": 40.0, "other_link": "to far", "other_counter": "far eth0"}


@pytest.mark.parametrize(
    ("values", "limit", "cause"),
    [
        ({"asked_share": 1.5}, "unknown", None),  # nothing held it to its rate
        # The last write exceeds a buffer of 20,000 bytes by a super-packet, and the kernel counted no waiting.
        ({"in_flight_sndbuf": 3.18, "in_flight_cwnd": 0.14}, "window", "send"),
        # A window of 10 KB through a shaper of 3 of 10 Gbit/s: it allows three times as much, and waits all the time.
        (FILLED | NEAR | {"held_share": 1.0, "rtt_growth": 3.0, "rtt_ms": 0.03, "window_share": 0.32}, "unknown", None),
        (BUFFER | NEAR | {"rtt_growth": 6.0, "rtt_ms": 0.06}, "window", "send"),
        ({"efficiency": 0.95, "queue_ms": 3.0, "queue_growth": 30.0, "lost_share": 0.05}, "loss", None),
        # A class beside others near the ceiling is limited by the link that they share.
        (STANDING, "line-rate", None),
        (STANDING | {"beside_classes": True}, "shared-link", None),
        # Bounds apply to what is printed: 98.0 %, 101.0 % and 101.1 %.
        ({"efficiency": 0.9796}, "line-rate", None),
        ({"efficiency": 1.0104}, "line-rate", None),
        ({"efficiency": 1.0106}, "unknown", "above"),
        ({"efficiency": 9.89, "asked_share": 1.0, "shared_share": 1.2, "shared_link": "to far"}, "unknown", "above"),
        ({"efficiency": 0.99, "larger_frames": 1.05, "clamped_mss": 888.0}, "mtu", "clamp"),
        # Two pairs share a link that carries 95 to 97 %: as one pair would, with a queue that is never empty.
        ({**SHARED, "queue_ms": 3.0, "queue_growth": 30.0, "variation": 0.01}, "shared-link", None),
        # Other traffic that fills the link with the run's, and that may.
        ({**OTHERS, "link_share": 0.98, "asked_share": 1.0}, "rate", None),
        ({**OTHERS, "link_share": 0.85, "queue_ms": 5.0, "queue_growth": 300.0}, "unknown", "traffic"),
        # A short test, not sampled often enough: the queue never was empty.
        ({"queue_ms": 12.8, "queue_growth": 1300.0, "variation": None, "lost_share": 0.002}, "path", "shaper"),
        (FULL | {"window_share": 0.4, "queue_ms": 6.0, "queue_growth": 2.2, "rtt_growth": 2.5}, "unknown", None),
        # A line of small frames on a busy machine: goodput varies by 17 %, and is 86 % of what the line carries.
        ({"queue_ms": 6.8, "queue_growth": 310.0, "variation": 0.168, "efficiency": 0.861}, "unknown", None),
        # A full window beside hosts that answer late: little of it stands in that queue.
        (FULL | {"window_share": 0.55, "queue_ms": 3.4, "queue_growth": 1.7, "rtt_growth": 1.9}, "window", "receive"),
        # Marks of congestion, where they explain the goodput.
        ({**MARKED, "marks_allow": 2.0}, "path", "marks"),
        ({**MARKED, "marks_allow": 2.1}, "unknown", None),
        ({**MARKED, "shared_share": 0.95, "shared_link": "to far"}, "unknown", None),
        ({**MARKED, "held_share": 0.6}, "window", "receive"),
        ({**MARKED, "processors": "others", "others_pct": 99.0}, "unknown", "others"),
        # Datagrams: losses by chance, and too few of them.
        ({**DATAGRAMS, "datagram_evenness": 3.6, "lost_share": 0.15}, "loss", None),
        ({**DATAGRAMS, "datagram_evenness": 0.01, "lost_share": 0.019}, "unknown", None),
        # What allows less holds the flow back: marks or losses.
        ({**MARKED, "lost_share": 0.0005, "loss_allows": 0.6}, "loss", None),
        (MARKED | {"lost_share": 0.0005, "loss_allows": 1.1, "agent_share": 0.05, "loss_clumps": 0.5}, "path", "marks"),
    ],
)
def test_a_limit_follows_from_its_evidence(values: dict[str, Any], limit: str, cause: str | None) -> None:
    verdict = diagnose(seen(**values))
    assert (verdict.limit, verdict.cause) == (limit, cause)


AT_RANDOM = {"lost_share": 0.01, "loss_allows": 1.1, "unevenness": 0.37, "loss_clumps": 0.4, "variance_ratio": 2.1}
AT_RANDOM |= {"loss_events": 40.0}


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({**AT_RANDOM, "lost_share": 0.0}, "unknown"),
        # A queue that never is empty.
        ({**AT_RANDOM, "queue_ms": 16.0, "queue_growth": 1600.0, "variation": 0.5}, "unknown"),
        # 0.5 % over 16 ms, 4 flows of reno, whose 24 samples happened to be even: losses one by one explain them.
        ({**AT_RANDOM, "unevenness": 0.18, "variance_ratio": 0.66, "loss_allows": 1.0}, "unknown"),
        # Policers of 400 Mbit/s over a distance.
        ({**AT_RANDOM, "unevenness": 0.077, "loss_clumps": 2.2, "variance_ratio": 0.41, "loss_allows": 0.43}, "path"),
        ({**AT_RANDOM, "unevenness": 0.085, "loss_clumps": 24.0, "variance_ratio": 1.5, "loss_allows": 0.14}, "path"),
        ({**AT_RANDOM, "unevenness": 0.077, "loss_clumps": 2.2, "efficiency": 0.94}, "loss"),
        # 500 Mbit/s over 25 ms: two clumps of losses only.
        ({**AT_RANDOM, "unevenness": 0.5, "loss_clumps": 216.0, "loss_events": 1.7, "loss_allows": 0.08}, "unknown"),
        # Without a distance: a bucket that runs empty and fills, or something else.
        ({**AT_RANDOM, "unevenness": 2.9, "loss_clumps": 50.0, "variance_ratio": None}, "unknown"),
        # Losses of whole super-packets: together as well, but what passes is not regulated.
        ({**AT_RANDOM, "unevenness": 0.94, "loss_clumps": 58.0, "variance_ratio": 2.4}, "loss"),
        # bbr, whose goodput the rule of Mathis et al. does not describe.
        ({**AT_RANDOM, "halves": False, "lost_share": 0.2, "loss_clumps": 14.0, "variance_ratio": 3.3}, "loss"),
        ({**AT_RANDOM, "halves": False, "lost_share": 0.2, "unevenness": 0.1, "loss_allows": 0.05}, "unknown"),
    ],
)
def test_losses_at_random_are_told_from_those_of_a_policer(values: dict[str, Any], limit: str) -> None:
    verdict = diagnose(seen(**values))
    assert verdict.limit == limit
    assert (verdict.cause == "policer") == (limit == "path")


QUEUE = {"queue_ms": 4.7, "queue_growth": 5.8, "variation": 0.05}
DEEP = {"queue_ms": 5.0, "queue_growth": 3.0, "variation": 0.2, "efficiency": 0.6}
NEARBY = {"rtt_growth": 1.9, "rtt_ms": 1.25, "rtt_min_ms": 0.5}
HELD = {"held_share": 0.8, "rtt_growth": 3.0, "window_share": 0.7}
BESIDE = {**OTHERS, "link_share": 0.98}
EVEN = {**AT_RANDOM, "unevenness": 0.1}
BUCKET = {**AT_RANDOM, "loss_clumps": 50.0, "variance_ratio": 0.2}

SLOW = {"sent_share": 0.5, "variation": 0.01}
BUSY = {"processors": "others", "others_pct": 99.0, "agent_share": 0.05}


@pytest.mark.parametrize(
    ("limit", "cause", "values", "figure", "bound", "beyond"),
    [
        ("mtu", None, {"efficiency": 0.99}, "larger_frames", 1.02, -1),
        ("other-traffic", None, BESIDE, "other_share", 0.05, -1),
        ("other-traffic", None, BESIDE, "link_share", 0.93, -1),
        ("other-traffic", None, BESIDE, "link_share", 1.25, +1),
        ("unknown", "traffic", BESIDE, "link_share", 0.8, -1),
        ("sender", "quota", {"window_share": 0.95, "held_share": 0.8}, "quota_sender", 0.3, -1),
        ("sender", "quota", {}, "quota_sender", 0.1, -1),
        ("sender", "quota", {"quota_receiver": 0.5}, "quota_sender", 0.5, -1),
        ("receiver", "quota", {}, "quota_receiver", 0.1, -1),
        ("disk", "read", {"disk_write": 0.6}, "disk_read", 0.6, -1),
        ("disk", "read", {"disk_write": 0.1}, "disk_read", 0.5, -1),
        ("disk", "write", {}, "disk_write", 0.5, -1),
        # Windows and buffers.
        ("window", "receive", {"held_share": 0.8, "processors": "machine", "busy_pct": 99.0}, "window_share", 0.9, -1),
        ("window", "receive", FILLED, "in_flight_share", 0.85, -1),
        ("window", "receive", FILLED, "held_share", 0.1, -1),
        ("window", "receive", FILLED, "rtt_growth", 1.3, +1),
        ("window", "receive", FILLED | NEARBY, "rtt_ms", 1.499999, +1),
        ("window", "receive", FILLED | NEARBY | {"rtt_growth": 2.0}, "window_share", 0.5, -1),
        ("window", "receive", FILLED | NEARBY | {"window_share": 0.4}, "rtt_growth", 1.999999, +1),
        ("window", "send", BUFFER, "in_flight_sndbuf", 0.6, -1),
        ("window", "send", BUFFER, "in_flight_cwnd", 0.8, +1),
        ("window", "send", BUFFER, "in_flight_share", 0.8, +1),
        ("window", "send", BUFFER, "rtt_growth", 1.3, +1),
        ("window", "receive", HELD, "held_share", 0.5, -1),
        ("window", "receive", HELD | {"window_share": 0.4}, "sndbuf_share", 0.5, -1),
        # Queues.
        ("path", "shaper", QUEUE, "queue_ms", 1.0, -1),
        ("path", "shaper", QUEUE, "queue_growth", 1.3, -1),
        ("path", "shaper", QUEUE, "variation", 0.1, +1),
        ("path", "shaper", QUEUE | FILLED | {"rtt_growth": 1.9}, "variation", 0.02, +1),
        ("path", "shaper", {"queue_ms": 2.1, "variation": 0.02}, "queue_growth", 1.1, -1),
        ("path", "shaper", {"queue_growth": 1.2, "queue_ms": 2.1}, "variation", 0.02, +1),
        ("path", "shaper", DEEP, "queue_ms", 5.0, -1),
        ("path", "shaper", DEEP, "queue_growth", 3.0, -1),
        ("path", "shaper", DEEP, "variation", 0.3, +1),
        ("path", "shaper", DEEP, "efficiency", 0.8, +1),
        ("path", "shaper", DEEP, "sending_share", 0.5, -1),
        ("path", "shaper", DEEP | BUSY, "agent_share", 0.1, +1),
        # Losses.
        ("loss", None, AT_RANDOM, "loss_allows", 2.0, +1),
        ("loss", None, AT_RANDOM, "loss_allows", 0.3, -1),
        ("loss", None, AT_RANDOM | {"loss_clumps": None}, "loss_allows", 0.5, -1),
        ("loss", None, AT_RANDOM | {"loss_clumps": 2.25}, "loss_allows", 0.2, -1),
        ("loss", None, AT_RANDOM, "sending_share", 0.5, -1),
        ("loss", None, AT_RANDOM | {"loss_clumps": 1.8}, "unevenness", 0.3, -1),
        ("loss", None, AT_RANDOM | {"loss_clumps": 2.0}, "variance_ratio", 0.75, -1),
        ("loss", None, AT_RANDOM | {"loss_clumps": 2.0}, "loss_events", 8.0, -1),
        ("loss", None, AT_RANDOM | BUSY, "agent_share", 0.1, +1),
        ("loss", None, AT_RANDOM | BUSY, "loss_allows", 0.8, -1),
        ("loss", None, EVEN, "loss_allows", 0.8, -1),
        ("loss", None, EVEN, "loss_allows", 1.5, +1),
        ("path", "policer", EVEN | {"loss_allows": 1.6}, "lost_share", 0.001, -1),
        ("path", "policer", EVEN | {"loss_allows": 1.6}, "unevenness", 0.2, +1),
        ("path", "policer", EVEN, "loss_clumps", 1.8, -1),
        ("path", "policer", BUCKET, "loss_clumps", 1.8, -1),
        ("path", "policer", BUCKET, "variance_ratio", 0.4, +1),
        ("path", "policer", DATAGRAMS, "datagram_evenness", 0.4, +1),
        ("receiver", None, DATAGRAMS, "overflow_share", 0.5, -1),
        ("path", "shaper", SLOW, "variation", 0.05, +1),
        ("path", "shaper", SLOW, "sent_share", 0.9799999, +1),
        ("unknown", "refuted", AT_RANDOM | {"loss_allows": 0.1}, "lost_share", 0.001, -1),
    ],
)
def test_a_bound_itself_counts_and_what_is_a_little_beyond_does_not(
    limit: str, cause: str | None, values: dict[str, Any], figure: str, bound: float, beyond: int
) -> None:
    at, past = (diagnose(seen(**(values | {figure: value}))) for value in (bound, bound * (1 + beyond * 1e-6)))
    assert (at.limit, at.cause) == (limit, cause)
    assert (past.limit, past.cause) != (limit, cause)


def test_a_verdict_has_the_numbers_that_its_rule_looked_at() -> None:
    verdict = diagnose(seen(quota_sender=0.914))
    assert verdict.numbers == {"quota_sender": 0.914, "goodput_mbps": 300.0}
    assert verdict.detail == "quota: quota_sender 0.914, goodput_mbps 300"
    assert Diagnosis().detail == "no rule applies"
    assert diagnose(seen()).numbers == {"goodput_mbps": 300.0, "efficiency": 0.3}


def test_repetitions_weigh_as_their_mean() -> None:
    both = pool_evidence([seen(efficiency=0.97, shared_link="to far"), seen(efficiency=0.99, shared_link="to far")])
    assert both.efficiency == pytest.approx(0.98)
    assert (both.shared_link, both.halves) == ("to far", True)
    assert pool_evidence([Evidence(efficiency=0.5), Evidence()]).efficiency == 0.5


def test_streams_that_differ_give_the_limit_of_the_one_that_falls_furthest_short() -> None:
    window, lossy, shared = Diagnosis("window"), Diagnosis("loss"), Diagnosis("shared-link")
    assert combine([(window, 900.0), (lossy, 100.0)]) == window
    assert combine([(window, 900.0), (shared, 100.0)], Diagnosis("line-rate")) == shared
    assert combine([(window, 900.0), (window, 100.0)], Diagnosis("line-rate")) == window
    assert combine([(window, 1.0), (lossy, 1.0)], Diagnosis("line-rate")).limit == "line-rate"
    assert combine([]) == Diagnosis()


def test_each_rule_can_be_passed_over() -> None:
    for rule in RULES:
        blind = seen()._replace(**dict.fromkeys(rule.needs))
        assert diagnose(blind).rule != rule.name
