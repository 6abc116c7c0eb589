"""Expand shorthands of a rig file: ranges and `--rig-set` before the schema checks the file, `defaults` after."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, Final

from rigctl.base.texts import printable
from rigctl.rig.inventory import BY_SSH
from rigctl.rig.ranges import NumberedName, expand_names, expand_numbered, is_range
from rigctl.rig.schema import SSH_ONLY, DefaultsSection, NodeSection, RigFile
from rigctl.yamlfile import FieldError, Mistake, Path, YamlDocument, suggestion
from rigctl.yamlfile.read import plain_value

_OPTION: Final = "--rig-set"
_EXAMPLES: Final = {"nodes": "nodes.pi1.rate=100M", "switches": "switches.force10.mtu=9216"}
"""Examples for sections whose keys name nodes or switches; `--rig-set` cannot add nodes or switches."""
_MOST_PARTS: Final = 5


def with_ranges(document: YamlDocument) -> YamlDocument:
    """Return the file with each range in `nodes` expanded, and `{n}` and `{name}` replaced. Mistakes name the range."""
    nodes = document.data.get("nodes")
    if not isinstance(nodes, dict) or not any(is_range(key) for key in nodes):
        return document
    sections: dict[str, Any] = {}
    keys: dict[str, str] = {}  # maps names of nodes to keys of the file
    wrong: list[Mistake] = []
    for key, section in nodes.items():
        try:
            names = expand_numbered(key) if is_range(key) else [NumberedName(key, None)]
        except FieldError as error:
            wrong.append(document.mistake(("nodes", key), f"{error}.", at_key=True))
            continue
        for named in names:
            if named.name in sections:
                first = document.keys.get(("nodes", keys[named.name]))
                line = f", first in line {first.line}" if first else ""
                what = f"nodes: {named.name} is given twice{line}. Keep one of them."
                wrong.append(document.mistake(("nodes", key), what, at_key=True))
                continue
            sections[named.name] = named.fill(section) if is_range(key) else section
            keys[named.name] = key
    placed = document
    for key in filter(is_range, nodes):
        placed = placed.copy_places(("nodes", key), *(("nodes", name) for name, own in keys.items() if own == key))
    return replace(placed, data={**document.data, "nodes": sections}, mistakes=(*document.mistakes, *wrong))


def without_repeats(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Return the mistakes; of a line for several nodes (a range, `defaults`), only the mistakes of the first node."""
    first: dict[str, Path] = {}
    return [
        mistake
        for mistake in mistakes
        if first.setdefault(mistake.where, mistake.path[:2]) == mistake.path[:2] or mistake.path[:1] != ("nodes",)
    ]


def with_defaults(document: YamlDocument, model: RigFile) -> tuple[YamlDocument, RigFile, list[Mistake]]:
    """Return document and model with keys of `defaults` copied to nodes that lack them, and mistakes in `defaults`.

    Values for a group override values for all nodes. A node in two groups with different values is a mistake. Nodes
    with another transport than SSH get no keys for SSH. Mistakes show the line in `defaults`.
    """
    if model.defaults is None or model.virtual is not None:
        return document, model, []
    of_groups, wrong = _group_defaults(document, model, model.defaults)
    common: dict[str, Path] = {key: ("defaults", key) for key in model.defaults.model_fields_set - {"groups"}}
    nodes: dict[str, NodeSection] = {}
    users: dict[Path, list[Path]] = {}  # maps the path of a key in `defaults` to the paths of its copies
    for name, own in model.nodes.items():
        by_ssh, given = (own.transport or model.transport) in BY_SSH, dict[str, Any]()
        for key, origin in {**common, **of_groups[name]}.items():
            if key not in own.model_fields_set and (by_ssh or key not in SSH_ONLY):
                given[key] = _default(model.defaults, origin)
                users.setdefault(origin, []).append(("nodes", name, key))
        nodes[name] = own.model_copy(update=given)
    for origin, places in users.items():
        document = document.copy_places(origin, *places)
    return document, model.model_copy(update={"nodes": nodes}), wrong


def _default(defaults: DefaultsSection, place: Path) -> object:
    return getattr(defaults if len(place) == 2 else defaults.groups[str(place[2])], str(place[-1]))


def _group_defaults(
    document: YamlDocument, model: RigFile, defaults: DefaultsSection
) -> tuple[dict[str, dict[str, Path]], list[Mistake]]:
    """Map each node to its groups' defaults (key to path in `defaults`). Return also mistakes, as if groups differ."""
    places: dict[str, dict[str, Path]] = {name: {} for name in model.nodes}
    wrong: list[Mistake] = []
    for group, section in defaults.groups.items():
        if group not in model.groups:
            what = f'defaults: there is no group "{group}" in groups.'
            wrong.append(document.mistake(("defaults", "groups", group), what, at_key=True))
            continue
        for name, key in product(_members(model.groups[group]), section.model_fields_set):
            place: Path = ("defaults", "groups", group, key)
            before = places[name].setdefault(key, place) if name in places else place
            differs = _default(defaults, before) != _default(defaults, place)
            if differs and key not in model.nodes[name].model_fields_set:
                what = f'node "{name}" is also in group "{before[2]}", with another {key}. Give {key} at the node.'
                wrong.append(document.mistake(place, f"defaults: {what}"))
    return places, wrong


def _members(group: Sequence[str]) -> list[str]:
    names: list[str] = []
    for member in group:
        with suppress(FieldError):  # `rigctl.rig.mistakes` reports an invalid range
            names += expand_names(member)
    return names


def with_options(document: YamlDocument, sets: Sequence[str]) -> tuple[YamlDocument, list[Mistake]]:
    """Return the rig file with each `PATH=VALUE` of `sets` applied, and mistakes in paths. The schema checks values."""
    wrong: list[Mistake] = []
    for text in sets:
        origin = f"{_OPTION} {printable(text)[:200]}"
        path, equals, value = text.partition("=")
        # A dot within brackets belongs to a range and does not separate keys.
        parts = [part.strip() for part in re.split(r"\.(?![^\[]*\])", path)]
        if not equals or not all(parts) or len(parts) > _MOST_PARTS:
            wrong.append(Mistake(origin, f"expected PATH=VALUE, as in {_OPTION} trunk.rate=10G."))
            continue
        unknown = _unknown(document, parts)
        if unknown is not None:
            wrong.append(Mistake(origin, unknown))
            continue
        paths = [(parts[0], name, *parts[2:]) for name in _names(parts)] if parts[0] in _EXAMPLES else [tuple(parts)]
        for place in paths:
            document = document.replaced(place, plain_value(parts[-1], value), origin)
    return document, wrong


def _names(parts: Sequence[str]) -> list[str]:
    return expand_names(parts[1]) if parts[0] == "nodes" else [parts[1]]


def _unknown(document: YamlDocument, parts: Sequence[str]) -> str | None:
    first = parts[0]
    if first not in RigFile.model_fields:
        return f'unknown key "{printable(first)[:64]}".{suggestion(first, list(RigFile.model_fields))}'
    if first not in _EXAMPLES:
        return None
    if len(parts) < 3:
        return f"expected a key of a node or switch, as in {_OPTION} {_EXAMPLES[first]}."
    known = document.data.get(first)
    known = list(known) if isinstance(known, dict) else []
    try:
        name = next((name for name in _names(parts) if name not in known), None)
    except FieldError as error:
        return f"{error}."
    what = "node" if first == "nodes" else "switch"
    return name and f'the rig file has no {what} "{printable(name)[:64]}".{suggestion(name, known)}'
