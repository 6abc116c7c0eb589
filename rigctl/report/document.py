"""Composes the report of a run from the parts that the modules of `sections` make."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.values import ValuesOfTests
from rigctl.base.units import format_duration, local_text
from rigctl.findings import Finding, Weight, by_weight
from rigctl.findings.goodput import NO_FIGURE
from rigctl.findings.repetitions import (
    retest_finding,
    retransmit_findings,
    shortfall,
    steadiness_findings,
    until_findings,
)
from rigctl.findings.text import end_sentence
from rigctl.records import RunInfo, RunPlan, user_tags
from rigctl.report import bursts, connections, control, multicast, requests
from rigctl.report.blocks import (
    Block,
    Charts,
    Document,
    Folded,
    Items,
    Paragraph,
    Part,
    Section,
    Sparkline,
    Table,
    Verbatim,
)
from rigctl.report.brief import brief_of
from rigctl.report.parts import answer_of_parts, lines_of_parts, of_part, titled_part
from rigctl.report.sections import (
    classes,
    counters,
    datagrams,
    effective,
    expectations,
    latency,
    matrix,
    mesh,
    messages,
    method,
    over_time,
    picture,
    soak,
    streams,
)

MOST_ROWS: Final = 60
"""A table with more rows than this is folded away if heat maps show its values."""

_PartOf: TypeAlias = Callable[[RunView], Part | None]


def _of_section(section: str, part: Callable[[RunView], Part]) -> _PartOf:
    """Return a function that makes the report part on the tests of `section`, or returns None if there are none."""
    return lambda view: None if (own := view.of_section(section)) is None else part(own)


def _of_streams(part: _PartOf) -> _PartOf:
    """Return `part` for the tests of a run with parts that count bytes over time; for other runs, as it is."""

    def of_run(view: RunView) -> Part | None:
        own = view.of_streams() if view.plan.parts else view
        return None if own is None else part(own)

    return of_run


def _with_findings(findings: Callable[[RunView], Iterable[Finding]]) -> _PartOf:
    """Return a function that makes a report part of findings only."""
    return lambda view: Part(findings=tuple(findings(view)))


def _retested(view: RunView) -> Part | None:
    """Return the report part on tests that were measured again, with the first results table of their retests."""
    again = view.retested
    made = (part_of(again) for part_of in RESULTS) if again is not None else ()
    table = next((part.results for part in made if part is not None and part.results), None)
    if again is None or table is None:
        return None
    bound = f" by more than {100 * view.plan.retest.variation:g} %" if view.plan.retest else ""
    title = f"Measured again: tests whose repetitions varied{bound}"
    findings = tuple(
        retest_finding(view, again, cell, messages.all_repetitions_text(view, cell.number) if cell.in_messages else "")
        for cell in again.plan.cells
    )
    findings += tuple(retransmit_findings(view, again))
    table = replace(_with_heads(view.info, table), legend=())
    return Part(findings=findings, sections=(Section(title, (table,), full=True),))


RESULTS: Final[tuple[_PartOf, ...]] = (
    control.part,
    classes.part,
    _of_section(streams.SECTION, streams.part),
    _of_section(datagrams.SECTION, datagrams.part),
    _of_section(messages.TIMES, messages.part),
    _of_section(messages.FILES, messages.file_part),
    _of_section(connections.SECTION, connections.part),
    _of_section(requests.SECTION, requests.part),
    _of_section(bursts.SECTION, bursts.part),
    _of_section(multicast.SECTION, multicast.part),
)
"""Functions that return a report part with a results table."""


class _Made(NamedTuple):
    """A function that makes a report part, or returns None if the run has nothing for it.

    For a run with parts it is called for each part, or `once` for the whole run.
    """

    of: _PartOf
    once: bool = False


SECTIONS: Final[tuple[_Made, ...]] = (
    _Made(_with_findings(method.experimental_findings), once=True),
    _Made(_with_findings(shortfall), once=True),
    _Made(_with_findings(steadiness_findings)),
    _Made(expectations.part),
    _Made(matrix.part),
    _Made(mesh.part),
    *map(_Made, RESULTS),
    _Made(latency.part),
    _Made(effective.part, once=True),
    _Made(soak.part),
    _Made(_of_streams(over_time.part), once=True),
    _Made(_of_streams(over_time.bins_part), once=True),
    _Made(counters.captures_part, once=True),
    _Made(_of_streams(counters.part), once=True),
    _Made(picture.part),
    _Made(_retested),
    _Made(_with_findings(until_findings)),
    _Made(_with_findings(method.link_sleep), once=True),
    _Made(_with_findings(lambda view: method.rig_findings(view.info)), once=True),
)
"""Functions that make the parts of a report, in the order of their sections."""


class _Body(NamedTuple):
    """Findings (the answer first) and sections on a run without parts, or on one part."""

    findings: list[Finding]
    results: tuple[Section, ...]
    sections: tuple[Section, ...]
    parts: tuple[Part, ...]
    lines: tuple[str, ...] = ()  # one for each part of the scenario

    @property
    def picture(self) -> Charts | None:
        return next((part.picture for part in self.parts if part.picture), None)


def document(view: RunView) -> Document:
    """Return the report of a run. Raise `InputError` if its records contradict each other."""
    info = view.info
    body = _folded(view) if view.plan.parts else _body(view, _make(view, SECTIONS))
    # Export rows include every repetition, also invalid ones.
    pairs = view.stored.pairs
    return Document(
        title=info.plan.title or info.plan.scenario_name,
        run=info.run,
        about=(rig_words(info.plan), *when(info)),
        notes="" if info.plan.imported else info.plan.notes,  # of an import, they are a finding
        findings=tuple(body.findings),
        results=body.results,
        sections=(*body.sections, *_closing(view, body.parts)),
        settings=method.settings(view, pairs),
        pairs=tuple(pairs),
        export=method.export_command(info.run),
        show=f"rigctl show {info.run} --all",
        verdicts=tuple(verdict for part in body.parts for verdict in part.verdicts),
        figures=lambda: (known for own in _views(view) for known in ValuesOfTests(own).by_name()),
        footer=f"Made by rigctl {info.versions.get('rigctl', '')}. “–” is unknown. K is 1024 bytes; rates are decimal.",
        picture=None if view.plan.parts else body.picture,
        brief=brief_of(view, body.findings[0].text, body.lines),
        tags=tuple(user_tags(info.tags).items()),
    )


def _make(view: RunView, sections: Iterable[_Made]) -> tuple[Part, ...]:
    return tuple(part for each in sections if (part := each.of(view)) is not None)


def _views(view: RunView) -> list[RunView]:
    """Return a view of each part of the scenario; the view itself if the scenario has no parts."""
    return [own for name in view.plan.parts if (own := view.of_part(name)) is not None] or [view]


def _body(view: RunView, parts: tuple[Part, ...], over_time: Mapping[int, Sparkline] = {}) -> _Body:
    """Return what the report parts of a run, or of one part of it, say. `over_time` has lines for rows of results."""
    results, rest = _results(view, parts, over_time)
    findings = [finding for part in parts for finding in part.findings]
    if not _has_several_kinds(view):  # keep only the first answer
        answers = [finding for finding in findings if finding.weight is Weight.ANSWER]
        findings = [finding for finding in findings if finding not in answers[1:]]
    if not any(finding.weight in (Weight.ANSWER, Weight.IMPOSSIBLE, Weight.FAILED) for finding in findings):
        findings.append(NO_FIGURE.say())
    return _Body(list(by_weight(findings)), results, tuple(rest), parts)


def _folded(view: RunView) -> _Body:
    """Return what is said of each part of the scenario, below its name, and of the whole run."""
    once = _make(view, (each for each in SECTIONS if each.once))
    lines = {number: line for part in once for number, line in part.sparklines.items()}
    own = [each for each in SECTIONS if not each.once]
    bodies = {
        name: _body(each, _make(each, own), lines) for name, each in zip(view.plan.parts, _views(view), strict=True)
    }
    findings = [finding for part in once for finding in part.findings]
    findings += [of_part(name, finding) for name, body in bodies.items() for finding in body.findings[1:]]
    answers = {name: body.findings[0] for name, body in bodies.items()}
    return _Body(
        [answer_of_parts(answers), *by_weight(findings)],
        tuple(section for name, body in bodies.items() for section in _results_of_part(name, body)),
        (
            *(titled_part(name, section) for name, body in bodies.items() for section in body.sections),
            *(section for part in once for section in (*part.sections, *part.details)),
        ),
        (*(part for body in bodies.values() for part in body.parts), *once),
        lines_of_parts(answers),
    )


def _results_of_part(name: str, body: _Body) -> Iterator[Section]:
    """Yield the results of a part: first its answer, its chart and its first table, below its name."""
    answer = body.findings[0]
    head: list[Block] = [Paragraph(" ".join(filter(None, (end_sentence(answer.text), answer.remedy))))]
    head += [body.picture] if body.picture else []
    first, *rest = body.results or (Section("Results", (), brief=True),)
    yield replace(titled_part(name, first), title=name, blocks=(*head, *titled_part(name, first).blocks), brief=True)
    yield from (titled_part(name, section) for section in rest)


def _has_several_kinds(view: RunView) -> bool:
    """Tell whether the run has tests of several kinds, as imported runs may have; False with traffic classes."""
    cells = view.plan.cells
    return len({cell.test for cell in cells}) > 1 and all(cell.traffic_class is None for cell in cells)


def _results(
    view: RunView, parts: Sequence[Part], over_time: Mapping[int, Sparkline]
) -> tuple[tuple[Section, ...], list[Section]]:
    """Return the result sections, and the sections after them. A long table is folded if heat maps show its values."""
    lead = [section for part in parts for section in part.lead]
    rest = [section for part in parts for section in part.sections]
    rest += [section for part in parts for section in part.details]
    tables = [part.results for part in parts if part.results is not None]
    if not tables:
        return (), [*lead, *rest]
    verdicts = tuple(verdict for part in parts for verdict in part.verdicts)
    lines = {**over_time, **{number: line for part in parts for number, line in part.sparklines.items()}}

    def composed(table: Table) -> Table:
        table = expectations.with_column(_with_heads(view.info, table), view.plan, verdicts)
        return replace(table, rows=tuple(replace(row, over_time=lines.get(row.test or 0)) for row in table.rows))

    if _has_several_kinds(view):
        return (Section("Results", tuple(map(composed, tables)), brief=True),), [*lead, *rest]
    table = composed(tables[0])
    if lead and (len(table.rows) > MOST_ROWS or any(part.leads for part in parts)):
        count = len(table.rows)
        more = Paragraph(f"`rigctl export {view.info.run} --level cells` gives {count} rows of values.", small=True)
        folded = Folded(f"All {count} tests, a row each", (table,))
        return (*lead, Section("All tests", (folded, more), full=True)), rest
    return (Section("Results", (table,), brief=True),), [*lead, *rest]


def _with_heads(info: RunInfo, table: Table) -> Table:
    """Return `table` with the column titles that the scenario gives."""
    heads = dict(info.plan.heads)
    columns = (
        replace(column, title=heads[column.title], name=column.title, short=None) if column.title in heads else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _closing(view: RunView, parts: Sequence[Part]) -> Iterator[Section]:
    """Yield the closing sections: how to reproduce the run, the method, the rig, and the scenario and rig file."""
    yield method.reproduce(view.plan, view.info.run)
    own = list(dict.fromkeys(sentence for part in parts for sentence in part.method))
    yield Section("Method", (Items(tuple(method.sentences(view.info, view.every, own))),))
    yield from method.rig_sections(view.info)
    if not (view.plan.imported or view.plan.anonymous):
        scenario = Folded(f"Scenario: {view.plan.scenario_name}", (Verbatim(view.plan.scenario_yaml),))
        rig = Folded(f"Rig: {view.plan.rig_name}", (Verbatim(view.plan.rig_yaml),))
        yield Section("Scenario and rig file", (scenario, rig))


def rig_words(plan: RunPlan) -> str:
    """Return the rig's name, and its kind unless it is real hardware: `gigablox, virtual rig`."""
    if plan.imported:
        return f"imported from {plan.scenario_name}"
    kind = {None: "", "loopback": ", loopback of one machine"}.get(plan.virtual, ", virtual rig")
    return f"{plan.rig_name}{kind}"


def when(info: RunInfo) -> tuple[str, ...]:
    """Return start time and duration of the run: `2026-11-22 04:10 UTC`, `1m 14s`; no duration if it has not ended."""
    took = () if info.ended_at is None else (format_duration(info.ended_at - info.started_at),)
    return local_text(info.started_at, "%Y-%m-%d %H:%M %Z"), *took
