"""Load a scenario, with the options of the command line, as the plan of a run; or raise all mistakes at once."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.conditions.condition import condition_of
from rigctl.records import REQUESTED, Against, Cell, Condition, Retest, RunPlan, Until
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.scenario.bursts import burst_mistakes, with_frame_times
from rigctl.scenario.classes import Test, class_mistakes, classes_of, tests_of_classes, time_mistakes
from rigctl.scenario.expectations import expect_mistakes, expectations_of, with_classes_apart
from rigctl.scenario.matrix import AxisMatrix, expand_matrix, with_axis, with_conditions, with_settings
from rigctl.scenario.mistakes import (
    cell_mistakes,
    datagram_mistakes,
    default_moments,
    fitting_bytes,
    matrix_mistakes,
    port_mistakes,
    scenario_mistakes,
    set_mistakes,
)
from rigctl.scenario.overrides import Changes, Overrides, against_of, read_overrides, with_variant
from rigctl.scenario.pairs import choose_pairs, has_foreign_pairs, pairs_option, sets_of, tests_of
from rigctl.scenario.schema import ScenarioFile, ScenarioKeys
from rigctl.scenario.shares import share_mistakes, with_rates
from rigctl.settings import (
    CLOSE,
    CONDITION,
    DIRECTION,
    ENGINE,
    ITERATIONS,
    LATENCY,
    NODELAY,
    PAIRS,
    PARALLEL,
    READ,
    REPLY,
    SIZE,
    TRANSPORT,
    WINDOW,
    WINDOW_TOTAL,
    WRITE,
    Settings,
)
from rigctl.settings.kinds import KINDS
from rigctl.yamlfile import MOST_FOUND, Mistake, MistakesError, YamlDocument, sort_mistakes
from rigctl.yamlfile.read import find_bundled, find_file, read_document
from rigctl.yamlfile.validate import validate

__all__ = ["Overrides", "find_scenario", "find_scenarios", "load_plan"]

_log = logging.getLogger(__name__)


def load_plan(scenario: str, overrides: Overrides) -> tuple[RunPlan, Rig]:
    """Return the plan and the rig of a run of `scenario` (a file or a bundled name). Contacts no node.

    Raise `InputError` with all mistakes of the first step that finds some: options and single keys, rig, conflicts.
    """
    changes, wrong_options = read_overrides(overrides)
    path = find_scenario(scenario)
    document = with_classes_apart(changes.applied(read_document(path)).listed("expect", "pairs"))
    model = validate(document, ScenarioFile, wrong_options)
    rig = _rig(document, model.rig, path.parent, overrides)
    matrix = matrix_of(model, changes)
    found = [
        *scenario_mistakes(document, model, rig),
        *matrix_mistakes(document, matrix, overridden=bool(changes.axes)),
    ]
    if found:
        foreign = overrides.rig is not None and "pairs" not in changes.fields and has_foreign_pairs(model.pairs, rig)
        raise MistakesError([*sort_mistakes(found), *([_lacking_nodes(path, rig, overrides)] if foreign else [])])
    tests, against = _tests(changes.located(document), model, rig, matrix, changes)
    _log.info("scenario %s: %d tests; rig %s: %d nodes", path, len(tests), rig.source, len(rig.nodes))
    plan = with_frame_times(with_rates(_plan(path, document, model, tests, rig=rig, overrides=overrides)))
    located = changes.located(document)
    found = [*share_mistakes(located, matrix, tests, plan), *port_mistakes(plan.cells, rig)]
    found += burst_mistakes(located, matrix, tests, plan)
    if found:
        raise MistakesError(found)
    return replace(plan, title=changes.title(model.title, path.stem), against=against), rig


def _tests(
    document: YamlDocument, model: ScenarioKeys, rig: Rig, matrix: AxisMatrix, changes: Changes
) -> tuple[list[Test], Against | None]:
    """Return the tests of a scenario, and its comparison (`--against`) if any. Raise `MistakesError`."""
    variant, before = changes.variant, None
    if variant is not None:
        matrix, before = with_variant(matrix, variant)
    sets, classes = sets_of(model.pairs, rig), classes_of(model.classes, model.test, model.duration, rig)
    found = list(set_mistakes(document, matrix, len(sets)))
    found += class_mistakes(document, matrix, len(sets), classes, None if variant is None else variant.option)
    found += time_mistakes(document, classes, model.duration, model.omit)
    tests: list[Test] = []
    if not found:
        tests = tests_of_classes(tests_of(expand_matrix(matrix), sets), KINDS[model.test], classes)
        found += islice(cell_mistakes(document, model, matrix, tests), MOST_FOUND)
        found += datagram_mistakes(document, tests, rig)
        found += expect_mistakes(document, model.expect, tests, overridden=bool(changes.axes))
    if found:
        raise MistakesError(sort_mistakes(found))
    return tests, None if variant is None else against_of(tests, variant, before, model.repetitions)


def _lacking_nodes(path: Path, rig: Rig, overrides: Overrides) -> Mistake:
    what = (
        f"this rig lacks nodes of the pairs in {path.name}. Give pairs of its own nodes, as in "
        f"{pairs_option(tuple(rig.nodes))}, or --set pairs=mesh (each node to every other)."
    )
    return Mistake(f"--rig {overrides.rig}", what)


def find_scenario(reference: str) -> Path:
    """Return the file of a scenario, given by path or bundled name. Raise `InputError` if there is none."""
    return find_file(reference, what="scenario", bundled=resources.scenarios())


def find_scenarios() -> dict[str, Path]:
    """Return the files of the scenarios that come with rigctl, by name."""
    return find_bundled(resources.scenarios())


def _rig(document: YamlDocument, named: str, folder: Path, overrides: Overrides) -> Rig:
    """Return the rig that `--rig` or the scenario names. Raise `MistakesError` if its name or its file is wrong."""
    if overrides.rig is None and not named:
        what = "no rig is named. Use the key rig or the option --rig, as in rig: gigablox."
        raise MistakesError([Mistake(document.name, what)])
    try:
        name, relative_to = (named, folder) if overrides.rig is None else (overrides.rig, None)
        return load_rig(name, relative_to, overrides.rig_sets)
    except MistakesError:
        raise
    except InputError as error:
        at = document.mistake(("rig",), str(error)) if overrides.rig is None else Mistake("--rig", str(error))
        raise MistakesError([at]) from None


def matrix_of(model: ScenarioKeys, changes: Changes) -> AxisMatrix:
    """Return the matrix of a scenario, with axes replaced by options of the command line."""
    own = AxisMatrix(model.matrix, model.exclude, model.include)
    matrix = with_conditions(with_settings(own, model.settings), model.conditions)
    for axis, values in changes.axes.items():
        matrix = with_axis(matrix, axis, values)
    return matrix


def _plan(
    path: Path, document: YamlDocument, model: ScenarioKeys, tests: Sequence[Test], *, rig: Rig, overrides: Overrides
) -> RunPlan:
    conditions = {name: condition_of(name, section) for name, section in model.conditions.items()}
    cells = tuple(_cell(number, test, model, conditions, rig) for number, test in enumerate(tests, 1))
    used = {node for cell in cells for node in cell.nodes}
    return RunPlan(
        title=model.title,
        notes=model.notes,
        scenario_name=path.stem,
        scenario_yaml=document.text,
        rig_name=rig.name,
        rig_yaml=rig.text,
        overrides=overrides.as_given(),
        repeat=model.repetitions,
        cells=cells,
        links={name: node.link for name, node in rig.nodes.items() if name in used},
        virtual=rig.virtual,
        max_skew_s=model.max_skew_s,
        heads=tuple(model.heads.items()),
        expectations=expectations_of(model.expect, tests),
        conditions=tuple(conditions[name] for name in dict.fromkeys(cell.condition for cell in cells) if name),
        ports=rig.ports,
        trunk=rig.trunk,
        retest=None if model.retest is None else Retest(model.retest.when, model.retest.repeat),
        until=None if model.until is None else Until(model.until.when, model.until.most),
        max_loss=model.max_loss,
        max_latency_s=model.max_latency,
        ip_version=rig.ip_version,
    )


def _cell(number: int, test: Test, model: ScenarioKeys, conditions: Mapping[str, Condition], rig: Rig) -> Cell:
    row, kind = test.row, test.kind
    taken = choose_pairs(test.pairs, row[PAIRS])
    total, name = row[WINDOW_TOTAL], row[CONDITION]
    condition = None if name is None else conditions[name]
    if total is not None:
        row |= {WINDOW: total // row[PARALLEL]}
    if kind.files:
        row |= {ITERATIONS: 1, READ: row[READ] or "disk", WRITE: row[WRITE] or "disk"}
    if kind.connects:
        row |= {CLOSE: row[CLOSE] or "reset"}
    if kind.scheduled:
        row |= {REPLY: row[REPLY] or row[SIZE], NODELAY: row[NODELAY] is not False}
    size = 1 if kind.connects else row[SIZE]
    if kind.multicast:
        row |= default_moments(row, model.duration)
    if size is None and kind.transport == "udp":
        size = fitting_bytes(rig, taken, condition)
    return Cell(
        number=number,
        test=kind.name,
        pairs=taken,
        duration_s=model.duration,
        omit_s=model.omit,
        parallel=row[PARALLEL],
        direction=row[DIRECTION],
        condition=name,
        capture=number in model.capture if isinstance(model.capture, tuple) else model.capture,
        bin_us=None if model.bins is None else round(model.bins * 1e6),
        transport=row[TRANSPORT] if TRANSPORT.takes(kind) else kind.transport,
        message_bytes=size,
        settings=Settings((setting, row[setting]) for setting in REQUESTED.values()),
        resize=condition is not None and condition.resize,
        folder=model.folder if kind.files else None,
        engine=row[ENGINE],
        latency_ms=row[LATENCY],
        traffic_class=test.traffic_class,
        group=test.group,
        start_s=test.start_s,
        stop_s=test.stop_s,
    )
