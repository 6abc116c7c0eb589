"""A command that needs an extra that is not installed names it, with the line that installs it."""

import os
import subprocess
import sys
from pathlib import Path

import builders
import pytest

from rigctl.store import open_store

WITHOUT = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"fontpkg_arimo", "prometheus_client", "psycopg", "pyarrow", "resvg_py"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from rigctl.cli.app import exit_code
sys.exit(exit_code(sys.argv[1:]))
"""
POSTGRESQL = "postgresql://anna:secret@127.0.0.1:1/rigctl"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "rigctl.db"
    info, measured = builders.gigablox()
    with open_store(str(path)) as opened:
        builders.put(opened, info, measured)
    return path


def without_extras(folder: Path, store: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *command],
        cwd=folder,
        env=os.environ | {"RIGCTL_STORE": store, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("extra", "named", "command"),
    [
        ("openmetrics", "export --format openmetrics", ("export", "--format", "openmetrics", "-o", "made")),
        ("parquet", "export --format parquet", ("export", "--format", "parquet", "-o", "made")),
        ("pictures", "report --fragment", ("report", "--fragment", "made")),
        ("postgresql", "store postgresql://anna:***@127.0.0.1:1/rigctl", ("runs", "--store", POSTGRESQL)),
    ],
)
def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    store: Path, tmp_path: Path, extra: str, named: str, command: tuple[str, ...]
) -> None:
    done = without_extras(tmp_path, str(store), *command)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert f"{named} needs the extra {extra} of rigctl: pip install 'rigctl[{extra}]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("show",), ("report", "-o", "page.html"), ("regress",)])
def test_all_else_works_without_any_extra(store: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    done = without_extras(tmp_path, str(store), *command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
