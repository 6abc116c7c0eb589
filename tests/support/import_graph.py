"""Which module of rigctl imports which, read from the sources; `if TYPE_CHECKING` and functions count, too."""

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, set[str]]


def import_graph(package: Path) -> Graph:
    """Each module of `package` by its dotted name, with those of the same package that it imports."""
    paths = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {name: set(_imported(ast.parse(path.read_text()), paths.keys())) - {name} for name, path in paths.items()}


def circles(graph: Graph) -> list[list[str]]:
    """Modules that reach each other (the strongly connected components of more than one), each list in order."""
    reached = {name: _reached_from(name, graph) for name in graph}
    found = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted(list(circle) for circle in found if len(circle) > 1)


def _reached_from(name: str, graph: Graph) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for other in graph[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, modules: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports name their package"
            for alias in node.names:
                # `from rigctl.remote import agent` takes a module of the package, other names come from its __init__.
                module = f"{node.module}.{alias.name}"
                if module in modules or node.module in modules:
                    yield module if module in modules else node.module
