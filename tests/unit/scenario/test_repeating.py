"""`retest` and `until` of a scenario: what they may say, and what they may not."""

from pathlib import Path

from cases import from_file
from planning import message, planned

from rigctl.records import Retest, Until
from rigctl.settings import RATE


def test_both_are_read_with_their_defaults(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'repeat: 5\nretest: {when: "variation > 5%"}')
    assert (plan.retest, plan.until) == (Retest(0.05, 15), None)
    assert planned(tmp_path, 'repeat: 5\nretest: {when: " variation>2.5 %", repeat: 3}').retest == Retest(0.025, 3)
    assert planned(tmp_path, 'repeat: 2\nuntil: "ci95 < 1%"').until == Until(0.01, 50)
    assert planned(tmp_path, "repeat: 2\nuntil: {when: ci95 < 0.5%, most: 9}").until == Until(0.005, 9)
    assert (planned(tmp_path, "").retest, planned(tmp_path, "").until) == (None, None)


@from_file
def test_what_does_not_fit_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


def test_where_nothing_else_is_said_two_repetitions_decide_about_more(tmp_path: Path) -> None:
    assert planned(tmp_path, 'until: "ci95 < 1%"').repeat == 2
    assert planned(tmp_path, 'retest: "variation > 5%"').repeat == 2
    assert planned(tmp_path, "").repeat == 1


def test_the_rates_after_the_options_decide_whether_there_is_a_search(tmp_path: Path) -> None:
    text = "test: udp\nmatrix: {rate: max}"
    plan = planned(tmp_path, text, "rate=40M", repeat=15)
    assert (plan.repeat, plan.cells[0][RATE]) == (15, 40_000_000)
    assert "--repeat 15: repeat: rate: max is searched once" in message(tmp_path, text, repeat=15)
    assert planned(tmp_path, text, repeat=1).repeat == 1
    assert "until: rate: max is searched once" in message(tmp_path, f"{text}\nuntil: ci95 < 1%")
    text = "test: udp\nrepeat: 3\nmatrix: {rate: 40M}\ninclude: [{rate: max}]"
    assert "repeat: rate: max is searched once" in message(tmp_path, text)
