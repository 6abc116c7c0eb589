"""From a scenario's name and the command line's options to the plan of a run, or to every mistake in them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.kinds import KINDS
from rigctl.records import (
    Cell,
    Condition,
    CopySettings,
    DatagramSettings,
    FileSettings,
    MessageSettings,
    RunPlan,
    TcpSettings,
    WindowSettings,
)
from rigctl.rig.inventory import Rig
from rigctl.rig.schema import load_rig
from rigctl.scenario.against import against_mistake, against_of, both
from rigctl.scenario.axes import AxisValue
from rigctl.scenario.conditions import condition_of
from rigctl.scenario.datagrams import datagram_mistakes, fitting_bytes
from rigctl.scenario.expecting import expect_mistakes, expectations_of
from rigctl.scenario.matrix import SETTINGS, Matrix, Row, expand, matrix_of, with_axis
from rigctl.scenario.meshes import PairSet, tests_of
from rigctl.scenario.mistakes import cell_mistakes, matrix_mistakes, mistakes, set_mistakes
from rigctl.scenario.overrides import Overrides, Settings, read_overrides
from rigctl.scenario.pairs import chosen, foreign_pairs, pairs_option, sets_of
from rigctl.scenario.repeating import repeat_of, retest_of, until_of
from rigctl.scenario.schema import ScenarioFile, ScenarioKeys
from rigctl.yamlfile import Document, Mistake, MistakesError, find, find_bundled, read_document, validated
from rigctl.yamlfile.mistakes import MOST_FOUND, in_order

__all__ = ["Overrides", "bundled_scenarios", "find_scenario", "load_plan"]

_log = logging.getLogger(__name__)
_MATRIX_KEYS = frozenset({"matrix", "exclude", "include", *SETTINGS})


def load_plan(scenario: str, overrides: Overrides) -> tuple[RunPlan, Rig]:
    """The plan and the rig of a run of `scenario`, a file or a bundled name. Touches no node.

    Raises `InputError`: of the options, the scenario and the rig file all mistakes together.
    """
    path = find_scenario(scenario)
    settings, wrong_options = read_overrides(overrides)
    document = settings.applied(read_document(path)).listed("expect")
    model, found = validated(document, ScenarioFile)
    rig, rig_mistakes = _rig(document, path, overrides)
    found += mistakes(document, rig)
    matrix = _matrix(document, found, settings)
    if matrix is not None:
        found += matrix_mistakes(document, matrix, overridden=bool(settings.axes))
    tests: list[tuple[Row, PairSet]] = []
    before: AxisValue = None
    if matrix is not None and not found and settings.variant is not None:
        widened = both(matrix, settings.variant)
        if isinstance(widened, Mistake):
            found.append(widened)
        else:
            matrix, before = widened
    if not found and model is not None and rig is not None and matrix is not None:
        sets = sets_of(model.pairs, rig)
        found += set_mistakes(document, matrix, len(sets), settings.options)
        tests = [] if found else tests_of(expand(matrix), sets)
        found += islice(cell_mistakes(document, tests, settings.options), MOST_FOUND)
        found += datagram_mistakes(document, tests, rig)
        rows = [row for row, _ in tests]
        found += expect_mistakes(document, model.expect, rows, overridden=bool(settings.axes))
    against = None
    if tests and not found and model is not None and settings.variant is not None:
        against = against_of(tests, settings.variant, before)
        retest, until = retest_of(model.retest), until_of(model.until)
        wrong_against = against_mistake(settings.variant, against, repeat_of(model.repeat, retest or until))
        found += [wrong_against] if wrong_against is not None else []
    wrong = wrong_options + in_order(found) + rig_mistakes
    if rig is not None and "pairs" not in settings.fields:
        wrong += _other_nodes(document, path, rig, overrides)
    if wrong or model is None or rig is None:
        raise MistakesError(wrong)
    _log.info("scenario %s: %d tests; rig %s: %d nodes", path, len(tests), rig.source, len(rig.nodes))
    title = settings.title(model.title, path.stem)
    made = _plan(path, document, model, tests, rig=rig, overrides=overrides, title=title)
    return replace(made, against=against), rig


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
    """The file of a scenario: a path, or a bundled name. Raises `InputError`, which tells what is bundled."""
    return find(reference, what="scenario", bundled=resources.scenarios())


def bundled_scenarios() -> dict[str, Path]:
    """The scenarios that come with rigctl, by name."""
    return find_bundled(resources.scenarios())


def _rig(document: Document, path: Path, overrides: Overrides) -> tuple[Rig | None, list[Mistake]]:
    """The rig, or what is wrong with it: in the rig file itself, or at the place that names it."""
    if overrides.rig is not None:
        return _loaded(overrides.rig, None, overrides.rig_sets, lambda what: Mistake("--rig", what))
    if "rig" not in document.data:
        what = "no rig: name one with rig: NAME in the scenario or --rig NAME, as in rig: gigablox."
        return None, [Mistake(document.name, what)]
    reference = document.data["rig"]
    if not isinstance(reference, str) or not reference.strip():
        return None, []  # the schema has told
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


def _matrix(document: Document, found: Sequence[Mistake], settings: Settings) -> Matrix | None:
    """The matrix with the axes of the command line, or None where one of its values is wrong."""
    if any(mistake.path[:1] and mistake.path[0] in _MATRIX_KEYS for mistake in found) or not all(
        settings.axes.values()
    ):
        return None
    if not isinstance(document.data.get("conditions") or {}, dict):
        return None  # the schema has told
    matrix = matrix_of(document.data)
    for name, values in settings.axes.items():
        matrix = with_axis(matrix, name, values)
    return matrix


def _plan(
    path: Path,
    document: Document,
    model: ScenarioKeys,
    tests: Sequence[tuple[Row, PairSet]],
    *,
    rig: Rig,
    overrides: Overrides,
    title: str,
) -> RunPlan:
    conditions = {name: condition_of(name, section) for name, section in model.conditions.items()}
    cells = tuple(_cell(number, row, model, pairs, conditions, rig) for number, (row, pairs) in enumerate(tests, 1))
    used = {node for cell in cells for node in cell.nodes}
    retest, until = retest_of(model.retest), until_of(model.until)
    return RunPlan(
        title=title,
        notes=model.notes,
        scenario_name=path.stem,
        scenario_yaml=document.text,
        rig_name=rig.name,
        rig_yaml=rig.text,
        overrides=overrides.as_given(),
        repeat=repeat_of(model.repeat, retest or until),
        cells=cells,
        links={name: node.link for name, node in rig.nodes.items() if name in used},
        virtual=rig.virtual,
        max_skew_s=max(0.010, model.duration / 100) if model.max_skew is None else model.max_skew,
        heads=tuple(model.heads.items()),
        expectations=expectations_of(model.expect, [row for row, _ in tests], KINDS[model.test]),
        conditions=tuple(conditions[name] for name in dict.fromkeys(cell.condition for cell in cells) if name),
        ports=rig.ports,
        trunk=rig.trunk,
        retest=retest,
        until=until,
        max_loss=model.max_loss,
        ip_version=rig.ip_version,
    )


def _cell(
    number: int,
    row: Row,
    model: ScenarioKeys,
    pairs: PairSet,
    conditions: Mapping[str, Condition],
    rig: Rig,
) -> Cell:
    kind = KINDS[model.test]
    taken = chosen(pairs, row["pairs"])
    given: Mapping[str, Any] = row  # of each axis, what its `parse` gives
    total, parallel = given["window_total"], given["parallel"]
    condition = conditions.get(str(row["condition"]))
    datagram_bytes = fitting_bytes(rig, taken, condition) if kind.counts == "datagrams" else None
    return Cell(
        number=number,
        test=model.test,
        pairs=taken,
        duration_s=model.duration,
        omit_s=model.omit,
        parallel=parallel,
        direction=given["direction"],
        condition=condition.name if condition else None,
        capture=number in model.capture if isinstance(model.capture, tuple) else model.capture,
        bin_us=None if model.bins is None else round(model.bins * 1e6),
        transport=given["transport"] if "transport" in kind.axes else kind.transport,
        message_bytes=datagram_bytes if given["size"] is None else given["size"],
        window=WindowSettings(
            bytes=given["window"] if total is None else total // parallel,
            total_bytes=total,
            resize=condition is not None and condition.resize,
        ),
        tcp=TcpSettings(given["mss"], given["congestion"], given["nodelay"]),
        copying=CopySettings(given["zerocopy"], given["copy"]),
        messages=MessageSettings(1 if kind.files else given["iterations"], given["busy_poll"]),
        datagrams=DatagramSettings(given["rate"], given["burst"]),
        engine=given["engine"],
        file=_file_settings(given, model.folder) if kind.files else FileSettings(),
        latency_ms=given["latency"],
    )


def _file_settings(given: Mapping[str, Any], folder: str) -> FileSettings:
    return FileSettings(given["read"] or "disk", given["write"] or "disk", folder)
