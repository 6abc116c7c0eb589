"""Load a scenario, with the options of the command line, as the plan of a run; or raise all mistakes at once."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.conditions.condition import condition_of
from rigctl.records import REQUESTED, Against, Cell, Condition, Retest, RunPlan, Until
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.scenario.bursts import burst_mistakes, with_frame_times
from rigctl.scenario.classes import Test, class_mistakes, classes_of, tests_of_classes, time_mistakes
from rigctl.scenario.expectations import expect_mistakes, expectations_of
from rigctl.scenario.matrix import AxisMatrix, expand_matrix, with_axis, with_conditions, with_settings
from rigctl.scenario.mistakes import (
    capture_mistakes,
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
from rigctl.scenario.parts import ScenarioPart, parts_of
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
from rigctl.yamlfile.validate import read_model

__all__ = ["Overrides", "find_scenario", "find_scenarios", "load_plan"]

_log = logging.getLogger(__name__)


def load_plan(scenario: str, overrides: Overrides) -> tuple[RunPlan, Rig]:
    """Return the plan and the rig of a run of `scenario` (a file or a bundled name). Contacts no node.

    Raise `InputError` with all mistakes of the first step that finds some: options and single keys, rig, conflicts.
    """
    changes, wrong_options = read_overrides(overrides)
    path = find_scenario(scenario)
    parts, wrong = parts_of(read_document(path), changes)
    models = _models(parts, [*wrong_options, *wrong])
    rig = _rig(parts[0].document, models[0].rig, path.parent, overrides)
    loaded = [_Loaded(part, model, matrix_of(model, part.changes)) for part, model in zip(parts, models, strict=True)]
    found = [
        mistake
        for part, model, matrix in loaded
        for mistake in (
            *scenario_mistakes(part.document, model, rig),
            *matrix_mistakes(part.document, matrix, overridden=bool(part.changes.axes)),
        )
    ]
    if found:
        own_pairs = "pairs" not in changes.fields
        foreign = overrides.rig is not None and own_pairs and any(has_foreign_pairs(own.pairs, rig) for own in models)
        raise MistakesError([*sort_mistakes(found), *([_lacking_nodes(path, rig, overrides)] if foreign else [])])
    tests, against = _all_tests(loaded, rig)
    _log.info("scenario %s: %d tests; rig %s: %d nodes", path, len(tests), rig.source, len(rig.nodes))
    plan = with_frame_times(with_rates(_plan(path, loaded, tests, rig=rig, overrides=overrides)))
    found = list(port_mistakes(plan.cells, rig))
    for (part, _, matrix), own in zip(loaded, tests, strict=True):
        located = part.changes.located(part.document)
        found += share_mistakes(located, matrix, own, plan)
        found += burst_mistakes(located, matrix, own, plan)
    if found:
        raise MistakesError(found)
    return replace(plan, title=changes.title(models[0].title, path.stem), against=against), rig


class _Loaded(NamedTuple):
    """A part of a scenario whose single keys are valid, with its matrix."""

    part: ScenarioPart
    model: ScenarioKeys
    matrix: AxisMatrix


def _models(parts: Sequence[ScenarioPart], before: Sequence[Mistake]) -> list[ScenarioKeys]:
    """Return the model of each part. Raise `MistakesError` with the mistakes of options (`before`) and of all parts."""
    read = [read_model(part.document, ScenarioFile) for part in parts]
    if before or not read or any(found for _, found in read):
        raise MistakesError([*before, *sort_mistakes(mistake for _, found in read for mistake in found)])
    return [model for model, _ in read if model is not None]


def _all_tests(loaded: Sequence[_Loaded], rig: Rig) -> tuple[list[list[Test]], Against | None]:
    """Return the tests of each part, numbered over the run, and the comparison (`--against`). Raise `MistakesError`."""
    every: list[list[Test]] = []
    against: Against | None = None
    found: list[Mistake] = []
    for own in loaded:
        tests, against, wrong = _tests(own, rig, 1 + sum(map(len, every)))
        every.append(tests)
        found += wrong
        if not tests:  # the numbers of the tests of the following parts are not known
            break
    else:
        part, model, _ = loaded[0]
        found += capture_mistakes(part.changes.located(part.document), model, sum(map(len, every)))
    if found:
        raise MistakesError(sort_mistakes(found))
    return every, against


def _tests(loaded: _Loaded, rig: Rig, first: int) -> tuple[list[Test], Against | None, list[Mistake]]:
    """Return the tests of a part, numbered from `first`, its comparison (`--against`) if any, and its mistakes.

    There are no tests if a mistake prevents that they are made.
    """
    part, model, matrix = loaded
    document, changes = part.changes.located(part.document), part.changes
    variant, before = changes.variant, None
    if variant is not None:
        matrix, before = with_variant(matrix, variant)
    sets, classes = sets_of(model.pairs, rig), classes_of(model.classes, model.test, model.duration, rig)
    found = list(set_mistakes(document, matrix, len(sets)))
    found += class_mistakes(document, matrix, len(sets), classes, None if variant is None else variant.option)
    found += time_mistakes(document, classes, model.duration, model.omit)
    if found:
        return [], None, found
    tests = tests_of_classes(tests_of(expand_matrix(matrix), sets), KINDS[model.test], classes, first, part.name)
    found += islice(cell_mistakes(document, model, matrix, tests), MOST_FOUND)
    found += datagram_mistakes(document, tests, rig)
    found += expect_mistakes(document, model.expect, tests, overridden=bool(changes.axes))
    compared = None if variant is None or found else against_of(tests, variant, before, model.repetitions)
    return tests, compared, found


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
    path: Path, loaded: Sequence[_Loaded], tests: Sequence[Sequence[Test]], *, rig: Rig, overrides: Overrides
) -> RunPlan:
    models, model = [own.model for own in loaded], loaded[0].model  # what holds for the run is the same in all of them
    conditions = {name: condition_of(name, section) for name, section in model.conditions.items()}
    each = list(zip(models, tests, strict=True))
    cells = tuple(_cell(test, own, conditions, rig) for own, each_test in each for test in each_test)
    used = {node for cell in cells for node in cell.nodes}
    return RunPlan(
        title=model.title,
        notes=model.notes,
        scenario_name=path.stem,
        scenario_yaml=loaded[0].part.document.text,
        rig_name=rig.name,
        rig_yaml=rig.text,
        overrides=overrides.as_given(),
        repeat=model.repetitions,
        cells=cells,
        links={name: node.link for name, node in rig.nodes.items() if name in used},
        virtual=rig.virtual,
        max_skew_s=min(own.max_skew_s for own in models),
        heads=tuple(model.heads.items()),
        expectations=tuple(bound for own, of_part in each for bound in expectations_of(own.expect, of_part)),
        conditions=tuple(conditions[name] for name in dict.fromkeys(cell.condition for cell in cells) if name),
        ports=rig.ports,
        trunk=rig.trunk,
        retest=None if model.retest is None else Retest(model.retest.when, model.retest.repeat),
        until=None if model.until is None else Until(model.until.when, model.until.most),
        max_loss=model.max_loss,
        max_latency_s=model.max_latency,
        ip_version=rig.ip_version,
    )


def _cell(test: Test, model: ScenarioKeys, conditions: Mapping[str, Condition], rig: Rig) -> Cell:
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
        number=test.number,
        test=kind.name,
        pairs=taken,
        duration_s=model.duration,
        omit_s=model.omit,
        parallel=row[PARALLEL],
        direction=row[DIRECTION],
        condition=name,
        capture=test.number in model.capture if isinstance(model.capture, tuple) else model.capture,
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
        part=test.part,
    )
