"""What pairs can have together, each node's link counted once per direction."""

from collections.abc import Sequence

import pytest

from rigctl.report.ceiling import DataPath, efficiency, limit, together_mbps


def together(ends: Sequence[str], rates_mbps: dict[str, float]) -> float | None:
    """The sum for `ends` as "ab" for a → b; a path's ceiling is 0.9 of its slower end."""
    rates = {node: round(rate * 1e6) for node, rate in rates_mbps.items()}
    paths = []
    for sender, receiver in ends:
        rate = min(rates[sender], rates[receiver])
        paths.append(DataPath(sender, receiver, rate, rate * 0.9e-6))
    return together_mbps(paths, rates)


GIGABIT = dict.fromkeys("abcdef", 1000.0)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (["ab"], 900),
        (["ab", "cd"], 1800),
        (["ab", "ba"], 1800),  # full duplex
        (["ab", "ac"], 900),  # one sends to two
        (["ba", "ca"], 900),  # two send to one
        (["ab", "bc", "ca"], 2700),  # a ring
        (["ab", "ac", "ad", "eb", "fb"], 1800),  # neither the senders nor the receivers alone bind
    ],
)
def test_pairs_share_the_links_of_their_nodes(ends: list[str], expected: float) -> None:
    assert together(ends, GIGABIT) == pytest.approx(expected)


def test_a_fast_server_serves_many_slow_clients() -> None:
    rates = {"s": 10_000.0, "a": 1000.0, "b": 1000.0, "c": 1000.0}
    assert together(["as", "bs", "cs"], rates) == pytest.approx(2700)
    assert together(["sa", "sb", "sc"], rates | {"s": 2000.0}) == pytest.approx(1800)


def test_one_unknown_path_leaves_the_sum_unknown() -> None:
    known = DataPath("a", "b", 10**9, 941.5)
    assert together_mbps([known, DataPath("c", "d", None, None)], {}) is None
    assert together_mbps([], {}) is None


def test_line_rate_begins_at_98_per_cent() -> None:
    assert limit(0.98) == "line-rate"
    assert limit(0.9799) == limit(None) == "unknown"
    assert efficiency(941.0, None) is None
    assert efficiency(None, 941.5) is None
