"""`defaults:` in a rig file: how nodes are reached, written once for all of them or for a group."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from rigctl.rig.ranges import expand_names
from rigctl.rig.sections import SSH_ONLY
from rigctl.yamlfile import Document, Mistake
from rigctl.yamlfile.fields import FieldError

KEY: Final = "defaults"
GROUPS: Final = "groups"


def with_defaults(document: Document) -> Document:
    """Return the rig file with the defaults in each node that has no value of its own.

    A group's value goes before that of all nodes. A node in two groups with different values is a mistake. Keys of SSH
    are not given to nodes that another transport reaches. A value has the place where it was written.
    """
    given, nodes = document.data.get(KEY), document.data.get("nodes")
    if not isinstance(given, dict) or not isinstance(nodes, dict) or document.data.get("virtual") is not None:
        return document
    origins, found = _origins(document, given, nodes)
    made = {
        name: dict(section or {}) if isinstance(section or {}, dict) else section for name, section in nodes.items()
    }
    takers: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for name, section in made.items():
        if not isinstance(section, dict):
            continue  # the schema tells
        by_ssh = (section.get("transport") or document.data.get("transport") or "ssh") == "ssh"
        for key, origin in origins[name].items():
            if key not in section and (by_ssh or key not in SSH_ONLY):
                section[key] = document.at(origin)
                takers.setdefault(origin, []).append(("nodes", name, key))
    placed = document
    for origin, places in takers.items():
        placed = placed.placed(origin, *places)
    return replace(placed, data={**document.data, "nodes": made}, mistakes=(*document.mistakes, *found))


def _origins(
    document: Document, given: Mapping[str, Any], nodes: Mapping[str, Any]
) -> tuple[dict[str, dict[str, tuple[Any, ...]]], list[Mistake]]:
    """Return by node and key the place of the default, and the mistakes of nodes in several groups."""
    own: dict[str, dict[str, tuple[Any, ...]]] = {name: {} for name in nodes}
    found = []
    groups, of_groups = document.data.get("groups"), given.get(GROUPS)
    for group, keys in (of_groups if isinstance(of_groups, dict) else {}).items():
        if not isinstance(groups, dict) or group not in groups:
            what = f'{KEY}: there is no group "{group}" in groups.'
            found.append(document.mistake((KEY, GROUPS, group), what, at_key=True))
            continue
        for name in _nodes_of(groups[group], nodes):
            for key in keys if isinstance(keys, dict) else ():
                place = (KEY, GROUPS, group, key)
                before = own[name].setdefault(key, place)
                if document.at(before) != document.at(place):
                    what = (
                        f'{KEY}: node "{name}" is also in group "{before[2]}", with another {key}. Give it at the node.'
                    )
                    if document.at(("nodes", name, key)) is None:
                        found.append(document.mistake(place, what))
    common = {key: (KEY, key) for key in given if key != GROUPS}
    return {name: {**common, **of_group} for name, of_group in own.items()}, found


def _nodes_of(listed: object, nodes: Mapping[str, Any]) -> list[str]:
    """Return the nodes of a group that are in the rig; a wrong member is told by the schema."""
    found: list[str] = []
    for member in listed if isinstance(listed, list) else [listed]:
        try:
            found += expand_names(str(member))
        except FieldError:
            continue
    return [name for name in found if name in nodes]
