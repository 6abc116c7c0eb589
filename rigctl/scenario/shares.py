"""Rates that a scenario gives as a share of the ceiling (`rate: 60%`): compute the rate of each flow in bit/s."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rigctl.base.values import least_of_all
from rigctl.records import Cell, RunPlan
from rigctl.scenario.classes import Test, place_of, setting_mistake
from rigctl.scenario.forecast import forecasts
from rigctl.scenario.matrix import AxisMatrix
from rigctl.settings import RATE
from rigctl.settings.traffic import share_of_ceiling
from rigctl.yamlfile import Mistake, YamlDocument


def with_rates(plan: RunPlan) -> RunPlan:
    """Return the plan with each share of a ceiling as a rate. A share whose ceiling is unknown stays."""
    return replace(plan, cells=tuple(_with_rate(cell, plan) for cell in plan.cells))


def share_mistakes(
    document: YamlDocument, matrix: AxisMatrix, tests: Sequence[Test], plan: RunPlan
) -> Iterator[Mistake]:
    """Yield a mistake for each share of `tests` that `with_rates` left, as the rig file lacks a rate or an MTU."""
    reported = set()
    numbered = {cell.number: cell for cell in plan.cells}
    for test in tests:
        cell = numbered[test.number]
        path = place_of(document, matrix, test, RATE)
        if share_of_ceiling(cell[RATE]) is None or path in reported:
            continue
        reported.add(path)
        lacking = next(fore.pair for fore in forecasts(cell, plan, plan.ip_version) if fore.ceiling_bps is None)
        what = (
            f'rate "{cell[RATE]}": the ceiling of {lacking} is unknown, because the rig file lacks the rate or the '
            "MTU of a link. Give both, as in links: {rate: 1G, mtu: 1500}, or give the rate in bit/s."
        )
        yield setting_mistake(document, RATE, what) if path is None else document.mistake(path, what)


def _with_rate(cell: Cell, plan: RunPlan) -> Cell:
    """Return the test with its rate in bit/s: the share of the lowest ceiling, divided among the flows of a pair."""
    share = share_of_ceiling(cell[RATE])
    if share is None:
        return cell
    ceiling_bps = least_of_all(each.ceiling_bps for each in forecasts(cell, plan, plan.ip_version))
    if ceiling_bps is None:
        return cell
    return replace(cell, settings=cell.settings | {RATE: max(1, int(share * ceiling_bps / cell.parallel))})
