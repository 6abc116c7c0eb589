"""Trees of /sys and /proc for several kinds of nodes, with the files that facts on processors and the card read.

node_trees.txt holds the trees. They were written by hand from the layout of Linux 6.1 to 6.12 with these drivers, not
copied from machines. `made` writes a tree into a folder for chroot.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Tree:
    """A node's tree: the facts that must be read from it, and its lines in node_trees.txt."""

    facts: dict[str, Any]
    lines: list[str] = field(default_factory=list)


def _trees() -> dict[str, Tree]:
    trees: dict[str, Tree] = {}
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("["):
            name, _, facts = line[1:].partition("] ")
            trees[name] = Tree(json.loads(facts))
        elif line.startswith("/"):
            trees[name].lines.append(line)
    return trees


TREES: Final = _trees()


def made(tree: Tree, root: Path) -> None:
    for line in tree.lines:
        name, sign, content = line.partition(" -> " if " -> " in line else " = ")
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if sign == " -> ":
            path.symlink_to(os.path.relpath(root / content.lstrip("/"), path.parent))
        elif sign:
            path.write_text(f"{content}\n")
        else:
            path.mkdir(parents=True)
