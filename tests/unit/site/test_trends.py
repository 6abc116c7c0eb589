from itertools import pairwise

import pytest
from known import known
from sites import ACCEPTED, FAILED, MISSED, SLOWER, weeks

from rigctl.analysis.nights.history import load_nights
from rigctl.report.charts.plot import Line, Rule
from rigctl.site.folder import ScenarioOnRig
from rigctl.site.nights import Judged, SiteRun, judge
from rigctl.site.pages import changes
from rigctl.site.trends import Trend, number_changes, trends
from rigctl.store import open_store


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    with open_store(str(tmp_path_factory.mktemp("store") / "store.db")) as store:
        weeks(store)
        infos = store.runs()
        scenario, runs = ScenarioOnRig("nightly", "lab"), list(map(SiteRun, infos))
        seen = load_nights(store, infos[-1])
        now = infos[-1].started_at + 86400
        return judge(scenario, runs, store.history.nights(), seen, store.history.accepted(), None, now)


@pytest.fixture(scope="module")
def drawn(judged: Judged) -> tuple[Trend, ...]:
    return trends(judged)


def test_marked_changes_are_listed_with_their_numbers(judged: Judged, drawn: tuple[Trend, ...]) -> None:
    regressions = known(judged.regressions)
    listed = number_changes(regressions.history)
    marked = [(number, shift) for trend in drawn for number, shift in trend.shifts]
    assert listed
    assert {(number, id(shift)) for number, shift in listed} == {(number, id(shift)) for number, shift in marked}
    table = known(changes(regressions))
    assert [row.entries[0].value for row in table.rows] == list(range(len(regressions.history), 0, -1))
    assert table.rows[-1].entries[-1].text == "accepted by anna@lab7: a cable <of> 20 m"
    assert table.rows[-1].entries[1].text.startswith("c as sender")


def test_a_change_and_an_accepted_level_are_marked_at_their_nights(judged: Judged, drawn: tuple[Trend, ...]) -> None:
    node = next(trend for trend in drawn if trend.subject.node == "c")
    rules = [mark for mark in node.chart.plot.panels[0].marks if isinstance(mark, Rule)]
    places = {slot.run: number for number, slot in enumerate(judged.slots)}
    assert [rule.text for rule in rules] == ["accepted", "1"]
    assert rules[0].at - rules[1].at == ACCEPTED - SLOWER
    assert places[node.shifts[0][1].since.run] == SLOWER


def test_no_line_of_any_test_passes_a_night_without_a_value(judged: Judged, drawn: tuple[Trend, ...]) -> None:
    missing = [number for number, slot in enumerate(judged.slots, 1) if slot.run is None]
    assert len(missing) == len({MISSED, FAILED})
    for trend in drawn:
        line = next(mark for mark in trend.chart.plot.panels[0].marks if isinstance(mark, Line) and not mark.dashed)
        gaps = [at for at, value in line.points if value is None]
        assert gaps == missing
        known = [at for at, value in line.points if value is not None]
        assert len(known) == len(judged.slots) - len(missing)
        assert sum(step > 1 for step in [later - earlier for earlier, later in pairwise(known)]) == len(gaps)
    assert sum(trend.subject.node is None for trend in drawn) == 6
