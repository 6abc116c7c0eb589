"""What a night learns from the log of its run."""

from typing import Any

from rigctl.nightly.commands import Ended, _measured
from rigctl.nightly.night import sentence
from rigctl.records import Night, NightOutcome

MISSING = "not measured: c → d (d: no answer)"


def ended(cell: int, status: str, reason: str = "") -> dict[str, Any]:
    message = f"test ended: {status}{f': {reason}' if reason else ''}"
    return {"run": "r1", "event": "test ended", "cell": cell, "status": status, "message": message}


def told(*log: dict[str, Any]) -> str:
    measured = _measured(Ended(3, "", ""), list(log), 60.0)
    assert (measured.run, measured.outcome) == ("r1", NightOutcome.FAILED)
    night = Night("s", "r", 0.0, 0.0, None, measured.outcome, measured.run, measured.reason, in_part=measured.in_part)
    return sentence(night)


def test_a_night_of_which_some_pairs_are_missing_was_measured_in_part_and_says_which() -> None:
    said = told(ended(1, "ok", MISSING), ended(2, "ok", MISSING))
    assert said == f"the night was measured in part: tests 1, 2: {MISSING}"


def test_a_night_without_any_result_failed() -> None:
    assert told(ended(1, "failed", "d: no answer")) == "the night failed: test 1: failed: d: no answer"
    assert told(ended(1, "failed", "d: no answer"), ended(2, "ok")).startswith(
        "the night was measured in part: test 1: "
    )
