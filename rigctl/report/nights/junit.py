"""A run's news as JUnit XML: a case for each test, pair and node in a role; what is worse has failed."""

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.shifts import Shift
from rigctl.report.nights.page import name, sentence
from rigctl.report.printers.junit import Case, Suite, junit


def as_junit(found: Regressions) -> str:
    plan = found.run.plan
    group = f"regressions.{plan.scenario_name}.{plan.rig_name}"
    worse = {id(shift.series): shift for shift in (*found.standing, *found.news) if not shift.better}
    better = {id(shift.series): shift for shift in found.news if shift.better}
    cases = [
        _case(series, group, worse.get(id(series)), better.get(id(series)), found) for series in found.nights.series
    ]
    return junit([Suite(f"rigctl regress {plan.scenario_name} on {plan.rig_name}", cases, found.run.started_at)])


def _case(series: NightSeries, group: str, worse: Shift | None, better: Shift | None, found: Regressions) -> Case:
    which = f"{name(series)}: {series.subject.metric.name}"
    if worse is not None:
        return Case(which, group, "failed", f"{sentence(worse, found.baseline)}.")
    if series.points[-1].value is None:
        return Case(which, group, "skipped", "Not measured in this run.")
    return Case(which, group, "passed", f"{sentence(better, found.baseline)}." if better is not None else "")
