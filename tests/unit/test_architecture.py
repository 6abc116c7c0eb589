"""The house rules that a program can check: layers, lengths, no registry hosts, types everywhere (mypy does that)."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "rigctl").rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
C_FILES = sorted((ROOT / "agents").glob("*.[ch]"))
MOST_LINES = 600
MOST_FUNCTION_LINES = 60
HOSTS = re.compile(r"(pypi|pythonhosted|crates|npmjs|maven|debian)\.(org|io|com)\b")
TEXTS = ("*.py", "*.toml", "*.txt", "*.yaml", "*.md", "Makefile", "run")


def test_each_room_imports_only_from_those_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("rigctl", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # or CycleError, which names the circle


@pytest.mark.parametrize("path", [*MODULES, *C_FILES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_too_long(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < MOST_FUNCTION_LINES, node.name


@pytest.mark.parametrize("path", [path for path in C_FILES if path.suffix == ".c"], ids=lambda path: path.name)
def test_no_c_function_is_too_long(path: Path) -> None:
    began = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "{":
            began = number
        elif line == "}" and began is not None:
            assert number - began <= MOST_FUNCTION_LINES, f"{path.name}:{began}"
            began = None


def test_no_file_names_a_registry_host() -> None:
    for pattern in TEXTS:
        for path in ROOT.rglob(pattern):
            if any(part.startswith(".venv") or part in ("dist", "build", "mutants", ".git") for part in path.parts):
                continue
            found = HOSTS.search(path.read_text(errors="replace"))
            assert found is None or path == Path(__file__), f"{path}: {found}"


def test_every_module_says_what_it_is_for() -> None:
    for path in MODULES:
        text = path.read_text()
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_waits_for_a_process_without_a_deadline(path: Path) -> None:
    tree = ast.parse(path.read_text())
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith)]
    opened = [ast.unparse(item.context_expr) for block in blocks for item in block.items]
    assert not [text for text in opened if text.startswith("subprocess.Popen(")], "use `running` of tests/support"
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    endless = [ast.unparse(call) for call in calls if _communicates(call) and not _has_deadline(call)]
    assert endless == [], "give it a timeout"


def _communicates(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "communicate"


def _has_deadline(call: ast.Call) -> bool:
    return any(keyword.arg == "timeout" for keyword in call.keywords)
