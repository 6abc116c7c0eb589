"""Parts of a scenario: `parts` names several things to measure, one after the other, in one run.

Each part is loaded as a scenario of its own: what stands at the top of the file holds for it, too. Mistakes are located
where the keys of the part stand in the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from rigctl.scenario.classes import CLASS_NAME
from rigctl.scenario.expectations import with_classes_apart
from rigctl.scenario.overrides import Changes
from rigctl.scenario.schema import OF_PART, OF_RUN
from rigctl.settings import PAIRS, Setting
from rigctl.yamlfile import Mistake, Path, YamlDocument, describe
from rigctl.yamlfile.document import Span

_PARTS: Final = "parts"
MOST_PARTS: Final = 20
_TIMES: Final = ("duration", "omit")
"""Keys of a part that options change in every part, as each kind of test takes a time."""


class ScenarioPart(NamedTuple):
    """A part of a scenario: its name, its keys and those of the whole run, and the options that hold for it.

    A scenario without parts is one part without a name.
    """

    name: str | None
    document: YamlDocument
    changes: Changes


def parts_of(document: YamlDocument, changes: Changes) -> tuple[list[ScenarioPart], list[Mistake]]:
    """Return the parts of a scenario, and the mistakes in options that hold for no part. Keys are not checked yet."""
    if _PARTS not in document.data:
        return [ScenarioPart(None, _ready(document, changes), changes)], []
    found = list(_shape_mistakes(document))
    given = document.data[_PARTS]
    names = [name for name, own in given.items() if isinstance(own, dict)] if isinstance(given, dict) else []
    documents = [_of_part(document, name) for name in names]
    held = [_changes_of(changes, each) for each in documents]
    idle = list(_idle_options(changes, held)) if documents else []
    made = [ScenarioPart(*each) for each in zip(names, map(_ready, documents, held), held, strict=True)]
    if found and made:  # the mistakes of the file are told with those of its parts
        made[0] = made[0]._replace(document=replace(made[0].document, mistakes=(*document.mistakes, *found)))
        found = []
    return made, [*idle, *found]


def _ready(document: YamlDocument, changes: Changes) -> YamlDocument:
    return with_classes_apart(changes.applied(document).listed("expect", "pairs"))


def _of_part(document: YamlDocument, name: str) -> YamlDocument:
    """Return a part as a document of its own, whose keys have the lines and columns that they have in the file."""
    own = {key: value for key, value in document.data[_PARTS][name].items() if key not in OF_RUN}
    shared = {key: value for key, value in document.data.items() if key not in own and _is_shared(key)}

    def moved(places: Mapping[Path, Span]) -> dict[Path, Span]:
        kept = {path: span for path, span in places.items() if path and path[0] in shared}
        return kept | {path[2:]: span for path, span in places.items() if path[:2] == (_PARTS, name)}

    return replace(document, data=shared | own, spans=moved(document.spans), keys=moved(document.keys))


def _is_shared(key: str) -> bool:
    """Tell whether a key at the top holds for every part; unknown keys do, so that they are told as such."""
    return key != _PARTS and (key == "duration" or key not in OF_PART)


def _shape_mistakes(document: YamlDocument) -> Iterator[Mistake]:
    """Yield the mistakes of `parts` itself: its shape, the names of parts, and keys at the wrong level."""
    given = document.data[_PARTS]
    example = "as in {forwarding: {test: udp, pairs: [a -> b], rate: max}}"
    if not isinstance(given, dict) or not given:
        found = "nothing" if given == {} else describe(given)
        yield document.mistake((_PARTS,), f"parts: expected names of parts and their keys, {example}, found {found}.")
        return
    if len(given) > MOST_PARTS:
        yield document.mistake((_PARTS,), f"parts: {len(given)} given; at most {MOST_PARTS}.", at_key=True)
    for key in document.data:
        if key in OF_PART and not _is_shared(key):
            what = f"{key}: says what is measured, which differs between parts. Move it into the parts."
            yield document.mistake((key,), what, at_key=True)
    for name, own in given.items():
        if not CLASS_NAME.fullmatch(name):
            what = f'part "{name[:64]}": expected 1 to 20 letters, digits, blanks and any of . _ + -'
            yield document.mistake((_PARTS, name), f"{what}.", at_key=True)
        if not isinstance(own, dict):
            what = f"part {name[:64]}: expected the keys of a test, {example}, found {describe(own)}."
            yield document.mistake((_PARTS, name), what, at_key=own is None)
            continue
        for key in own:
            if key in OF_RUN:
                what = f"{key}: holds for the whole run. Move it to the top of the file."
                yield document.mistake((_PARTS, name, key), what, at_key=True)


def _changes_of(changes: Changes, document: YamlDocument) -> Changes:
    """Return the options that hold for a part: those of the run, times, and those that change what the part names."""
    fields = {
        key: given for key, given in changes.fields.items() if key in OF_RUN or key in _TIMES or key in document.data
    }
    axes = {axis: values for axis, values in changes.axes.items() if _has_axis(document, axis)}
    options = {axis: option for axis, option in changes.options.items() if axis in axes}
    return Changes(axes, fields, options)


def _has_axis(document: YamlDocument, axis: Setting[Any]) -> bool:
    """Tell whether a part names an axis: under `matrix`, in a row of `include`, or for all its tests."""
    matrix, include = document.data.get("matrix"), document.data.get("include")
    rows = [matrix, *(include if isinstance(include, list) else ())]
    if axis is not PAIRS:  # the key `pairs` of a part is the list of pairs, not the axis
        rows.append(document.data)
    return any(isinstance(row, dict) and axis.name in row for row in rows)


def _idle_options(changes: Changes, held: Sequence[Changes]) -> Iterator[Mistake]:
    """Yield a mistake for each option that changes none of the parts, and for `--against`."""
    used = {name for own in held for name in (*own.fields, *(axis.name for axis in own.axes))}
    given = {key: origin for key, (_, origin) in changes.fields.items()}
    given |= {axis.name: changes.options[axis] for axis in changes.axes}
    for name, origin in given.items():
        if name not in used:
            yield Mistake(origin, f'no part of the scenario has "{name}". Write it into the part that it is for.')
    if changes.variant is not None:
        what = "not for a scenario with parts. Run the scenario twice, and use rigctl compare."
        yield Mistake(changes.variant.option, what)
