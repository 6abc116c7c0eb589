"""The house rules that a program can check: lengths, circles, no registry hosts. Layers are for lint-imports."""

import ast
import math
import os
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "rigctl").rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
C_FILES = sorted((ROOT / "agents").glob("*.[ch]"))
C_DEFINITION = re.compile(r"^(?!static|extern|typedef|struct \w+;)[a-z][\w *]*?(\w+)(?:\(|\[| =|;)", re.MULTILINE)
"""A function or variable that other files can name: it begins its line, and is not static."""
C_INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
MOST_LINES = 600
LEAST_LINES = 40
SHORT = {"__main__.py", "base/version.py"}
"""Shorter files: what Python, the build and every room look for under these names."""
MOST_FILES = 14
MOST_FUNCTION_LINES = 60
LEAST_DEADLINE_S = 20
TOP_NAME = re.compile(r"^(?:async def |def |class |(?=\w+(?:: [^=\n]+)? = ))(\w+)", re.MULTILINE)
"""A function, a class, a type or a constant at the top of a module."""
SAME_THING = {"main", "part", "explain", "SECTION", "FACTS", "CHECK_FACTS", "parse_addresses", "parse_duplex"}
SAME_THING |= {"parse_interfaces", "parse_routes", "parse_speed"}
"""Names of one thing in several modules: of each section, each part of a host, each system, each program."""
FACADE = "api.py"
"""Has the short names of the library; no module of rigctl imports it."""
PLACES = {"wait": 0, "join": 0, "timeout": 0, "wait_for": 1, "event": 1, "answer": 1}
"""Which argument of a method that waits is its deadline."""
HOSTS = re.compile(r"(pypi|pythonhosted|crates|npmjs|maven|debian)\.(org|io|com)\b")
TEXTS = (".py", ".toml", ".txt", ".yaml", ".yml", ".md", "Makefile", "run")
NOT_OURS = ("dist", "build", "mutants", ".git")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("rigctl", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # or CycleError, which names the circle


def test_no_agent_files_need_each_other_in_a_circle() -> None:
    """A file needs what it includes, and the files that define the names that it uses."""
    texts = {path.name: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in C_FILES}
    needed = {file: set(C_INCLUDE.findall(text)) for file, text in texts.items()}
    defined = {file: set(C_DEFINITION.findall(text)) for file, text in texts.items() if file.endswith(".c")}
    for file, own in defined.items():
        words = set(re.findall(r"\w+", texts[file])) - own
        needed[file] |= {home for home, names in defined.items() if names & words}
    assert {"flow.h", "sample-linux.c", "sample-freebsd.c"} < needed["flow.c"]
    TopologicalSorter(needed).prepare()  # or CycleError, which names the circle


def test_a_public_name_has_one_meaning() -> None:
    """A name at the top of two modules is a second meaning, unless it names the same thing there."""
    homes: dict[str, list[str]] = {}
    for path in [path for path in MODULES if path.name != FACADE]:
        for name in set(TOP_NAME.findall(path.read_text())):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    several = {name: found for name, found in homes.items() if len(found) > 1 and not name.startswith("_")}
    assert several.keys() == SAME_THING, {name: several.get(name) for name in several.keys() ^ SAME_THING}


def test_no_file_is_too_long_or_too_short() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in [*MODULES, *C_FILES]}
    assert [str(path) for path, count in lines.items() if count > MOST_LINES] == []
    short = {path for path in MODULES if lines[path] < LEAST_LINES and path.name != "__init__.py"}
    assert {str(path.relative_to(ROOT / "rigctl")) for path in short} == SHORT


def test_no_folder_has_too_many_files() -> None:
    agent = (ROOT / "tests" / "agent").rglob("*.py")
    files = Counter(path.parent for path in [*MODULES, *agent] if path.name != "__init__.py")
    assert [str(folder) for folder, count in files.items() if count > MOST_FILES] == []


def test_no_function_is_too_long() -> None:
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < MOST_FUNCTION_LINES, f"{path}: {node.name}"


def test_no_c_function_is_too_long() -> None:
    for path in C_FILES:
        began = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line == "{":
                began = number
            elif line == "}" and began is not None:
                assert number - began <= MOST_FUNCTION_LINES, f"{path.name}:{began}"
                began = None


def test_no_file_names_a_registry_host() -> None:
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [name for name in inside if name not in NOT_OURS and not name.startswith(".venv")]
        for path in (Path(folder, name) for name in names if name.endswith(TEXTS)):
            found = HOSTS.search(path.read_text(errors="replace"))
            assert found is None or path == Path(__file__), f"{path}: {found}"


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path in MODULES if (tree := parsed(path)).body and not ast.get_docstring(tree)] == []


def test_no_test_waits_for_a_process_without_a_deadline() -> None:
    for path in TEST_FILES:
        tree = parsed(path)
        blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith)]
        opened = [ast.unparse(item.context_expr) for block in blocks for item in block.items]
        assert not [text for text in opened if text.startswith("subprocess.Popen(")], f"{path}: use `running`"
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "communicate"]
        endless = [ast.unparse(call) for call in calls if "timeout" not in {word.arg for word in call.keywords}]
        assert endless == [], f"{path}: give it a timeout"


def test_no_test_sleeps_or_waits_with_a_short_deadline() -> None:
    """Tests wait for events with `eventually`: what comes late on a busy machine comes all the same."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)[:80]}"
        for path in TEST_FILES
        if path.name.startswith(("test_", "conftest"))
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call) and (_called(call) == "sleep" or _deadline_s(call) < LEAST_DEADLINE_S)
    ]
    assert found == [], "wait for an event with `eventually` (tests/support/processes.py)"


def _called(call: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _deadline_s(call: ast.Call) -> float:
    """Return the literal deadline of a wait; infinity for any other call, a constant with a name, and 0 (none)."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in {"timeout", "ends_within_s"}]
    if isinstance(call.func, ast.Attribute) and (place := PLACES.get(call.func.attr)) is not None:
        given += call.args[place : place + 1]
    literal = [node.value for node in given if isinstance(node, ast.Constant)]
    return min((value for value in literal if isinstance(value, int | float) and value > 0), default=math.inf)
