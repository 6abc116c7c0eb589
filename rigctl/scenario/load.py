"""From a scenario's name and the command line's options to the plan of a run, or to every mistake in them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.conditions.condition import condition_of
from rigctl.records import REQUESTED, Against, Cell, Condition, Retest, RunPlan, Until
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.scenario.classes import Test, class_mistakes, classed, classes_of
from rigctl.scenario.expecting import expect_mistakes, expectations_of
from rigctl.scenario.matrix import AT_TOP, Matrix, expand, matrix_of, with_axis
from rigctl.scenario.mistakes import (
    cell_mistakes,
    datagram_mistakes,
    fitting_bytes,
    matrix_mistakes,
    mistakes,
    port_mistakes,
    set_mistakes,
)
from rigctl.scenario.overrides import Changes, Overrides, against_of, read_overrides, with_variant
from rigctl.scenario.pairs import chosen, foreign_pairs, pairs_option, sets_of, tests_of
from rigctl.scenario.schema import ScenarioFile, ScenarioKeys
from rigctl.settings import (
    CONDITION,
    DIRECTION,
    ENGINE,
    ITERATIONS,
    LATENCY,
    PAIRS,
    PARALLEL,
    READ,
    SIZE,
    TRANSPORT,
    WINDOW,
    WINDOW_TOTAL,
    WRITE,
    Settings,
)
from rigctl.settings.kinds import KINDS
from rigctl.yamlfile import MOST_FOUND, Document, Mistake, MistakesError, in_order
from rigctl.yamlfile.read import find, find_bundled, read_document
from rigctl.yamlfile.validate import validated

__all__ = ["Overrides", "bundled_scenarios", "find_scenario", "load_plan"]

_log = logging.getLogger(__name__)
_MATRIX_KEYS = frozenset({"matrix", "exclude", "include", "classes", *AT_TOP})


def load_plan(scenario: str, overrides: Overrides) -> tuple[RunPlan, Rig]:
    """Return the plan and the rig of a run of `scenario`, a file or a bundled name. No node is touched.

    Raise `InputError` with all mistakes of the options, the scenario and the rig file together.
    """
    path = find_scenario(scenario)
    changes, wrong_options = read_overrides(overrides)
    document = changes.applied(read_document(path)).listed("expect", "pairs")
    model, found = validated(document, ScenarioFile)
    rig, rig_mistakes = _rig(document, path, overrides)
    found += mistakes(document, rig)
    matrix = _matrix(document, found, changes)
    if matrix is not None:
        found += matrix_mistakes(document, matrix, overridden=bool(changes.axes))
    tests: list[Test] = []
    against: Against | None = None
    if model is not None and rig is not None and matrix is not None and not found:
        tests, against, found = _tests(document, model, rig, matrix, changes)
    wrong = wrong_options + in_order(found) + rig_mistakes
    if rig is not None and "pairs" not in changes.fields:
        wrong += _other_nodes(document, path, rig, overrides)
    if wrong or model is None or rig is None:
        raise MistakesError(wrong)
    _log.info("scenario %s: %d tests; rig %s: %d nodes", path, len(tests), rig.source, len(rig.nodes))
    plan = _plan(path, document, model, tests, rig=rig, overrides=overrides)
    if few := list(port_mistakes(plan.cells, rig)):
        raise MistakesError(few)
    return replace(plan, title=changes.title(model.title, path.stem), against=against), rig


def _tests(
    document: Document, model: ScenarioKeys, rig: Rig, matrix: Matrix, changes: Changes
) -> tuple[list[Test], Against | None, list[Mistake]]:
    """Return the tests of a scenario whose values are right alone, its comparison, and mistakes between its values."""
    variant, before = changes.variant, None
    if variant is not None:
        widened = with_variant(matrix, variant)
        if isinstance(widened, Mistake):
            return [], None, [widened]
        matrix, before = widened
    sets, classes = sets_of(model.pairs, rig), classes_of(model.classes, model.test)
    found = list(set_mistakes(document, matrix, len(sets), changes.options))
    option = None if variant is None else variant.option
    found += class_mistakes(document, matrix, len(sets), classes, changes.options, option)
    if found:
        return [], None, found
    tests = classed(tests_of(expand(matrix), sets), KINDS[model.test], classes)
    found += islice(cell_mistakes(document, tests, changes.options), MOST_FOUND)
    found += datagram_mistakes(document, tests, rig)
    found += expect_mistakes(document, model.expect, tests, overridden=bool(changes.axes))
    if variant is None or found:
        return tests, None, found
    against = against_of(tests, variant, before, _repeat(model))
    return (tests, None, [against]) if isinstance(against, Mistake) else (tests, against, [])


def _other_nodes(document: Document, path: Path, rig: Rig, overrides: Overrides) -> list[Mistake]:
    """Return what to do about a scenario whose pairs are of another rig than that of `--rig`."""
    if overrides.rig is None or not foreign_pairs(document, rig):
        return []
    what = (
        f"it has not all nodes of the pairs in {path.name}. Give pairs of its own nodes, as in "
        f"{pairs_option(tuple(rig.nodes))}, or --set pairs=mesh: each node to every other."
    )
    return [Mistake(f"--rig {overrides.rig}", what)]


def find_scenario(reference: str) -> Path:
    """Return the file of a scenario: a path, or a bundled name. Raise `InputError` with the bundled names."""
    return find(reference, what="scenario", bundled=resources.scenarios())


def bundled_scenarios() -> dict[str, Path]:
    """Return the scenarios that come with rigctl, by name."""
    return find_bundled(resources.scenarios())


def _rig(document: Document, path: Path, overrides: Overrides) -> tuple[Rig | None, list[Mistake]]:
    """Return the rig, or its mistakes: those of the rig file, or one at the place that names it."""
    if overrides.rig is not None:
        return _loaded(overrides.rig, None, overrides.rig_sets, lambda what: Mistake("--rig", what))
    if "rig" not in document.data:
        what = "no rig: name one with rig: NAME in the scenario or --rig NAME, as in rig: gigablox."
        return None, [Mistake(document.name, what)]
    reference = document.data["rig"]
    if not isinstance(reference, str) or not reference.strip():
        return None, []  # reported by the schema
    return _loaded(reference.strip(), path.parent, overrides.rig_sets, lambda what: document.mistake(("rig",), what))


def _loaded(
    reference: str, relative_to: Path | None, sets: Sequence[str], misnamed: Callable[[str], Mistake]
) -> tuple[Rig | None, list[Mistake]]:
    try:
        return load_rig(reference, relative_to, sets), []
    except MistakesError as error:
        return None, list(error.mistakes)
    except InputError as error:
        return None, [misnamed(str(error))]


def _matrix(document: Document, found: Sequence[Mistake], changes: Changes) -> Matrix | None:
    """Return the matrix with the axes of the command line, or None if one of its values is wrong."""
    if any(mistake.path[:1] and mistake.path[0] in _MATRIX_KEYS for mistake in found) or not all(changes.axes.values()):
        return None
    if not isinstance(document.data.get("conditions") or {}, dict):
        return None  # reported by the schema
    matrix = matrix_of(document.data)
    for axis, values in changes.axes.items():
        matrix = with_axis(matrix, axis, values)
    return matrix


def _plan(
    path: Path,
    document: Document,
    model: ScenarioKeys,
    tests: Sequence[Test],
    *,
    rig: Rig,
    overrides: Overrides,
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
        repeat=_repeat(model),
        cells=cells,
        links={name: node.link for name, node in rig.nodes.items() if name in used},
        virtual=rig.virtual,
        max_skew_s=max(0.010, model.duration / 100) if model.max_skew is None else model.max_skew,
        heads=tuple(model.heads.items()),
        expectations=expectations_of(model.expect, tests),
        conditions=tuple(conditions[name] for name in dict.fromkeys(cell.condition for cell in cells) if name),
        ports=rig.ports,
        trunk=rig.trunk,
        retest=None if model.retest is None else Retest(model.retest.when, model.retest.repeat),
        until=None if model.until is None else Until(model.until.when, model.until.most),
        max_loss=model.max_loss,
        ip_version=rig.ip_version,
    )


def _repeat(model: ScenarioKeys) -> int:
    """Return how often each test is measured at first: two repetitions decide about more of them."""
    if model.repeat is not None:
        return model.repeat
    return 1 if model.retest is None and model.until is None else 2


def _cell(
    number: int,
    test: Test,
    model: ScenarioKeys,
    conditions: Mapping[str, Condition],
    rig: Rig,
) -> Cell:
    row, kind = test.row, test.kind
    taken = chosen(test.pairs, row[PAIRS])
    total, name = row[WINDOW_TOTAL], row[CONDITION]
    condition = None if name is None else conditions[name]
    if total is not None:
        row |= {WINDOW: total // row[PARALLEL]}
    if kind.files:
        row |= {ITERATIONS: 1, READ: row[READ] or "disk", WRITE: row[WRITE] or "disk"}
    size = row[SIZE]
    if size is None and kind.counts == "datagrams":
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
    )
