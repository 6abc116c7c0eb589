"""Each limit is complete: a rule, a sentence, a meaning, a remedy, and a row in the documentation."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from documents import cells_of

from rigctl.findings.limits import LIMIT_SENTENCES, bottleneck_findings, bottleneck_text
from rigctl.limits.hosts import Processors, ProcessorUse
from rigctl.limits.limit import LIMITS, Limit
from rigctl.limits.rules import RULES, Diagnosis, Evidence, Rule
from rigctl.records import Pair
from rigctl.results.summary import CellSummary

ROOT: Final = Path(__file__).parents[3]
_TABLE: Final = (ROOT / "docs" / "reference" / "results.md").read_text("utf-8")
_FIRST_COLUMN: Final = [line.split("|")[1] for line in _TABLE.splitlines() if line.startswith("| `")]
DOCUMENTED: Final = {word for words in _FIRST_COLUMN for word in re.findall("`([a-z-]+)`", words)}
LITERAL: Final = re.compile(rf"limit\b.{{0,9}} (?:[!=]=|in|not in) .{{0,9}}\"(?:{'|'.join(LIMITS)})\"")
"""Matches a comparison of a limit with a literal word."""


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_limit_has_a_rule_a_sentence_a_meaning_a_remedy_and_a_row(limit: Limit) -> None:
    assert limit.meaning, "give it a meaning in rigctl/limits/limit.py"
    assert limit.phrase or limit.word == "unknown", "give it a phrase in rigctl/limits/limit.py"
    assert any(rule.limit == limit.word for rule in RULES), "add a rule in rigctl/limits/rules.py"
    assert limit.word in LIMIT_SENTENCES, "add sentences in rigctl/findings/limits.py"
    assert limit.is_goal != bool(LIMIT_SENTENCES[limit.word].remedy), "name a remedy in rigctl/findings/limits.py"
    assert limit.word in DOCUMENTED, "add a row to docs/reference/results.md"


def _limited(rule: Rule) -> CellSummary:
    """Return a test of which `rule` names the limit, with a number for each field that the rule shows."""
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), window_bytes=None)
    (made,) = cells_of(builders.run(builders.plan([cell])), [builders.repetition(cell, (400.0,))])
    numbers: dict[str, Any] = dict.fromkeys(rule.shows or rule.needs, 0.5)
    numbers |= {name: "to pi2" for name in numbers if name.endswith("_link")} | {"goodput_mbps": 400.0}
    verdict = Diagnosis(rule.limit, rule.name, rule.cause, numbers)
    seen = Evidence(held_share=0.5, window_bytes=64_000.0, lost_share=0.5, rtt_ms=5.0, goodput_mbps=400.0)
    busy = ProcessorUse(Processors(99.0, 50.0, 99.0, 90.0 if rule.cause == "others" else 0.0), Processors(9.0, 5.0))
    streams = [replace(stream, verdict=verdict, evidence=seen) for stream in made.streams]
    return replace(made, verdict=verdict, streams=tuple(streams), busy=busy)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_test_that_a_rule_finds_limited_has_a_sentence_and_a_finding(rule: Rule) -> None:
    limited = _limited(rule)
    text, found = bottleneck_text(limited), list(bottleneck_findings([limited]))
    if LIMITS[rule.limit].is_goal or rule.cause == "above":  # other findings tell why goodput is above the ceiling
        assert (text, found) == ("", [])
        return
    start = "Limit unknown: " if rule.limit == "unknown" else "Limited by "
    (finding,) = found
    assert text.startswith(start)
    assert finding.text.startswith(start)
    assert finding.code == f"limit-{rule.limit}"
    assert finding.remedy or rule.name == "processors" or rule.limit == "window"  # advice follows only from a cause


def test_a_full_socket_buffer_is_not_called_a_busy_processor() -> None:
    limited = _limited(next(rule for rule in RULES if rule.name == "receive buffer full"))
    why = "50 % of the lost datagrams were dropped at its full socket buffer"
    assert bottleneck_text(limited) == f"Limited by the receiver: {why}."
    (found,) = bottleneck_findings([limited])
    assert (found.text, found.remedy) == (
        f"Limited by the receiver: test 1; {why}.",
        "A larger window sets a larger buffer.",
    )


def test_rules_and_sentences_are_on_limits_that_exist() -> None:
    assert {rule.limit for rule in RULES} == LIMITS.keys() == LIMIT_SENTENCES.keys()


def test_no_room_above_the_limits_compares_with_a_literal_word() -> None:
    assert LITERAL.search('[cell for cell in cells if cell.limit == "window"]')
    assert LITERAL.search('if way.limit not in (None, "unknown"):')
    files = [path for path in (ROOT / "rigctl").rglob("*.py") if path.parent.name != "limits"]
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path in files for match in LITERAL.finditer(path.read_text())]
    assert found == [], "compare with a record of rigctl/limits/limit.py, or give the record a field"
