"""Trees of /sys and /proc as kinds of nodes have them, as far as facts on processors and the card read them.

node_trees.txt has them. It was written by hand after the layout of Linux 6.1 to 6.12 with these drivers, not copied
from machines. `made` puts a tree into a folder, a root for chroot.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Tree:
    """A node: the facts that are to come out of it, and its lines."""

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
