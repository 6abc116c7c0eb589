"""What switches and interfaces counted beside the flows: against the flows, and where segments were lost."""

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Weight
from rigctl.model.counters.losses import Where
from rigctl.records import Status
from rigctl.report.blocks import Folded, Items, Part, Section
from rigctl.report.sections.counters.tables import point_table, test_table, where_counted
from rigctl.report.sections.counters.words import flag_text, loss_text, missing_text, run_text


def part(view: RunView) -> Part | None:
    """`None` where no switch was asked and no interface's counters explain anything."""
    asked = any(repetition.counters or repetition.counters_missing for repetition in view.repetitions)
    if view.plan.in_messages or not (
        asked or any(usage.nic for repetition in view.repetitions for usage in repetition.nodes)
    ):
        return None
    balances = view.frames.derived.balances
    each = [balance for balance in balances.each if balance.repetition.status is Status.OK]
    lost = [attribution for balance in each for attribution in balance.lost]
    if not asked and all(attribution.where is Where.UNATTRIBUTED for attribution in lost):
        return None
    whole = balances.whole()
    findings = (
        *(Finding(text, Weight.DETAIL) for text in run_text(each, whole)),
        *(Finding(text, Weight.SUSPECT, Severity.WARNING) for text in flag_text(each)),
        *(Finding(text, Weight.SUSPECT, Severity.WARNING) for text in missing_text(view.repetitions)),
        *(Finding(text, Weight.LOSS) for text in loss_text(lost)),
    )
    by_test, by_point = test_table(view.plan, each), point_table(whole)
    blocks = (
        Items(tuple(finding.text for finding in findings)),
        *((Folded(f"Test by test: {where_counted(each)}", (by_test,)),) if by_test else ()),
        *((Folded("Port by port, over the whole run", (by_point,)),) if by_point else ()),
    )
    return Part(findings=findings, details=(Section("Counters of switches and interfaces", blocks),))
