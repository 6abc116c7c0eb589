"""The matrix of pairs and flows: heat maps, lines, differences of conditions, and the limit that pairs share."""

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.panels import ConditionPanels, Matrix
from rigctl.report.blocks import Block, Items, Paragraph, Part, Section
from rigctl.report.sections.matrix.panels import condition_grids, condition_maps, difference_maps, settings_text
from rigctl.report.sections.matrix.words import difference_text, limits, locked_text, low_text, matrix_findings


def part(view: RunView) -> Part | None:
    """Return the part of a run whose tests differ in the number of pairs; None for any other run."""
    found = None if view.plan.in_messages else view.matrix
    if found is None:
        return None
    return Part(
        findings=tuple(matrix_findings(view.info, found)),
        lead=tuple(_condition(view, found, condition) for condition in found.conditions),
        sections=_differences(found),
    )


def _condition(view: RunView, found: Matrix, condition: ConditionPanels) -> Section:
    title = f"Total goodput: {condition.name}" if condition.name else "Total goodput"
    said = [settings_text(condition.condition)]
    if len(found.conditions) > 1:  # of a single one the answer has just said it
        said += [*(text for text, _ in limits(view.info, [condition])), low_text(condition)]
    maps = condition_maps(found, condition)
    alike = " and conditions" if len(found.conditions) > 1 else ""
    columns = "flows of a pair" if condition_grids(found, condition)[0].axis == "flows" else "windows"
    note = (
        f"Goodput summed over all pairs, in Gbit/s. Rows: pairs at once; columns: {columns}; the same colours and "
        f"scales in all panels{alike}. “–” was not measured."
    )
    sentences = Items(tuple(filter(None, said)))
    blocks: list[Block] = [*((sentences,) if sentences.sentences else ()), maps, Paragraph(note, small=True)]
    return Section(title, tuple(blocks), brief=True)


def _differences(found: Matrix) -> tuple[Section, ...]:
    note = (
        "Difference of the sums in Gbit/s: blue where the first named is faster, orange where it is slower; the same "
        "colours in all panels. “–” was not measured under both."
    )
    made = []
    for difference in found.differences:
        title = f"Difference: {difference.later.name or 'no condition'} − {difference.earlier.name or 'no condition'}"
        said = Items(tuple(filter(None, (difference_text(difference), locked_text(difference)))))
        made.append(Section(title, (said, difference_maps(found, difference), Paragraph(note, small=True))))
    return tuple(made)
