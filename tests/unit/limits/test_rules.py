"""The rules that name a limit: each with evidence that was measured where that limit was injected."""

from typing import Any

import pytest
from cases import from_file, rows_of

from rigctl.limits.kinds import KINDS_OF, SAMPLED, EvidenceKind
from rigctl.limits.rules import RULES, Diagnosis, Evidence, diagnose
from rigctl.results.evidence import combine, pool_evidence

SENDS: dict[str, Any] = {
    **{"goodput_mbps": 300.0, "efficiency": 0.3, "held_share": 0.0, "sending_share": 1.0, "halves": True},
    **{"in_flight_share": 0.05, "in_flight_cwnd": 0.9, "in_flight_sndbuf": 0.05, "window_share": 0.01},
    **{"rtt_growth": 1.02, "queue_growth": 1.0, "queue_ms": 0.0, "window_bytes": 3e6, "lost_share": 0.0},
    **{"variation": 0.02, "quota_sender": 0.0, "quota_receiver": 0.0, "larger_frames": 1.0},
}
"""A sender with data and open windows, over a link that is not full and a path without a queue or losses."""
NAMED: dict[str, dict[str, Any]] = {
    "FILLED": {"in_flight_share": 0.98, "held_share": 0.4},
    "BUFFER": {"in_flight_sndbuf": 1.0, "in_flight_cwnd": 0.4},
    "SHARED": {"efficiency": 0.48, "shared_share": 0.96, "shared_link": "to far"},
    "STANDING": {
        "efficiency": 0.95,
        "queue_ms": 5.0,
        "queue_growth": 10.0,
        "shared_share": 0.99,
        "shared_link": "to b",
    },
    "FULL": {"in_flight_share": 1.03, "held_share": 0.98, "variation": 0.09},
    "NEAR": {"rtt_added_ms": 0.02},
    "MARKED": {"marked_share": 0.03, "marks_allow": 0.7},
    "DATAGRAMS": {"datagram_evenness": 0.1, "lost_share": 0.1, "halves": None},
    "OTHERS": {"other_share": 0.4, "other_mbps": 40.0, "other_link": "to far", "other_counter": "far eth0"},
    "AT_RANDOM": {
        **{"lost_share": 0.01, "loss_allows": 1.1, "unevenness": 0.37, "loss_clumps": 0.4, "variance_ratio": 2.1},
        "loss_events": 40.0,
    },
    "QUEUE": {"queue_ms": 4.7, "queue_growth": 5.8, "variation": 0.05},
    "DEEP": {"queue_ms": 5.0, "queue_growth": 3.0, "variation": 0.2, "efficiency": 0.6},
    "NEARBY": {"rtt_growth": 1.9, "rtt_added_ms": 0.75},
    "HELD": {"held_share": 0.8, "rtt_growth": 3.0, "window_share": 0.7},
    "SLOW": {"sent_share": 0.5, "variation": 0.01},
    "PAUSED": {"pause_frames": 900.0, "pause_allows": 1.0, "paused_by": "x 3", "lost_share": 0.0},
    "BUSY": {"processors": "others", "busy_pct": 60.0, "others_pct": 99.0, "agent_share": 0.05},
}
NAMED |= {
    "BESIDE": NAMED["OTHERS"] | {"link_share": 0.98},
    "EVEN": NAMED["AT_RANDOM"] | {"unevenness": 0.1},
    "BUCKET": NAMED["AT_RANDOM"] | {"loss_clumps": 50.0, "variance_ratio": 0.2},
}
"""What cases have in common: cases/rules.txt names it by `like`."""


def seen(like: str = "", **values: Any) -> Evidence:
    """Return evidence with `values`, beside those of the cases that `like` names."""
    for name in reversed(like.split()):
        values = NAMED[name] | values
    return Evidence(**(SENDS | values))


@from_file
def test_a_limit_follows_from_its_evidence(values: dict[str, Any], limit: str, cause: str | None) -> None:
    verdict = diagnose(seen(**values))
    assert (verdict.limit, verdict.cause) == (limit, cause)


@from_file
def test_losses_at_random_are_told_from_those_of_a_policer(values: dict[str, Any], limit: str) -> None:
    verdict = diagnose(seen(**values))
    assert verdict.limit == limit
    assert (verdict.cause == "policer") == (limit == "path")


@from_file
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


SHARED: dict[str, Any] = {"shared_share": 0.99, "shared_link": "to far"}
"""Evidence on which a rule on shared links holds. Rules on windows come before it."""


def test_a_rule_is_false_if_a_known_clause_fails_whatever_else_is_unknown() -> None:
    blind: dict[str, Any] = {
        "in_flight_share": None,
        "in_flight_sndbuf": None,
        "in_flight_cwnd": None,
        "gives": frozenset(EvidenceKind),
    }
    verdict = diagnose(seen(**SHARED, **blind, rtt_growth=1.4))
    assert (verdict.limit, verdict.missing) == ("shared-link", ())


def test_the_limit_is_unknown_if_an_earlier_rule_on_another_limit_may_hold() -> None:
    blind: dict[str, Any] = {
        "in_flight_sndbuf": None,
        "gives": frozenset({EvidenceKind.ROUND_TRIPS}),
        "in_flight_cwnd": 0.5,
    }
    verdict = diagnose(seen(**SHARED, **blind))
    assert (verdict.limit, verdict.cause, verdict.may_be) == ("unknown", "missing", ("window",))
    assert verdict.detail == "unknown without round trips: goodput_mbps 300, efficiency 0.3"
    assert diagnose(seen(**SHARED, **blind, efficiency=0.99)).limit == "line-rate"  # an earlier rule
    assert diagnose(seen(**blind, like="FILLED")).limit == "window"  # two rules name it


def test_a_rule_on_evidence_that_a_node_never_gives_is_skipped_and_the_verdict_says_so() -> None:
    blind: dict[str, Any] = {
        "in_flight_sndbuf": None,
        "lacks": frozenset({EvidenceKind.ROUND_TRIPS, EvidenceKind.QUOTAS}),
        "in_flight_cwnd": 0.5,
    }
    verdict = diagnose(seen(**SHARED, **blind))
    assert (verdict.limit, verdict.lacks) == ("shared-link", (EvidenceKind.ROUND_TRIPS,))
    assert verdict.detail.endswith("goodput_mbps 300; not reported: round trips")
    # One clause that is never known decides, even if another is unknown only here.
    both = blind | {"in_flight_cwnd": None, "gives": frozenset({EvidenceKind.CWND})}
    assert diagnose(seen(**SHARED, **both)).limit == "shared-link"


def test_evidence_that_does_not_apply_is_not_said_to_be_missing() -> None:
    verdict = diagnose(seen(**SHARED, asked_share=None, larger_frames=None, gives=frozenset(EvidenceKind)))
    assert (verdict.limit, verdict.lacks, verdict.missing) == ("shared-link", (), ())


@pytest.mark.parametrize("kind", sorted(SAMPLED))
def test_missing_evidence_never_leads_to_another_limit(kind: EvidenceKind) -> None:
    hidden = [name for name, kinds in KINDS_OF.items() if kind in kinds]
    cases = rows_of(test_a_limit_follows_from_its_evidence, test_losses_at_random_are_told_from_those_of_a_policer)
    for values, limit, *_ in cases:
        blind = seen(**{**values, **dict.fromkeys(hidden), "gives": frozenset(EvidenceKind)})
        assert diagnose(blind).limit in (limit, "unknown"), values


def test_repetitions_weigh_as_their_mean() -> None:
    both = pool_evidence([seen(efficiency=0.97, shared_link="to far"), seen(efficiency=0.99, shared_link="to far")])
    assert both.efficiency == pytest.approx(0.98)
    assert (both.shared_link, both.halves) == ("to far", True)
    assert pool_evidence([Evidence(efficiency=0.5), Evidence()]).efficiency == 0.5
    least = pool_evidence([Evidence(rtt_min_ms=8.0, rcvbuf_bytes=2), Evidence(rtt_min_ms=9.0, rcvbuf_bytes=1)])
    assert (least.rtt_min_ms, least.rcvbuf_bytes) == (8.0, 1)


def test_a_kind_of_evidence_is_given_if_one_repetition_gave_it() -> None:
    linux = Evidence(gives=frozenset({EvidenceKind.QUOTAS}), lacks=frozenset({EvidenceKind.MARKS}))
    both = pool_evidence([linux, Evidence(lacks=frozenset({EvidenceKind.QUOTAS}))])
    assert (set(both.gives), set(both.lacks)) == ({EvidenceKind.QUOTAS}, {EvidenceKind.MARKS})


def test_streams_that_differ_give_the_limit_of_the_one_that_falls_furthest_short() -> None:
    window, lossy, shared = Diagnosis("window"), Diagnosis("loss"), Diagnosis("shared-link")
    assert combine([(window, 900.0), (lossy, 100.0)]) == window
    assert combine([(window, 900.0), (shared, 100.0)], Diagnosis("line-rate")) == shared
    assert combine([(window, 900.0), (window, 100.0)], Diagnosis("line-rate")) == window
    assert combine([(window, 1.0), (lossy, 1.0)], Diagnosis("line-rate")).limit == "line-rate"
    assert combine([]) == Diagnosis()
    line, missing = Diagnosis("line-rate"), Diagnosis(cause="missing", missing=(EvidenceKind.RATES,))
    assert combine([(line, 1.0), (missing, 100.0)], line) == missing
    assert combine([(line, 100.0), (missing, 1.0)]) == line


def test_each_rule_can_be_passed_over() -> None:
    for rule in RULES:
        blind: dict[str, Any] = dict.fromkeys(rule.needs)
        assert diagnose(seen(**blind)).rule != rule.name
