"""What reading commands import: packages that only others need would take tenths of a second of each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import builders
import pytest

from rigctl.store import open_store

HEAVY = {
    "alembic", "asyncssh", "netmiko", "pandas", "prometheus_client", "psycopg", "pyarrow", "pysnmp", "resvg_py",
    "scipy",
}  # fmt: skip
CODE = """
import json, sys
from rigctl.cli.app import exit_code
code = exit_code(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one run of the seven tests."""
    path = tmp_path_factory.mktemp("store") / "rigctl.db"
    info, measured = builders.gigablox()
    with open_store(str(path)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, info.started_at)
        for repetition in measured:
            opened.add(run, repetition)
        opened.finish(run, info.status, info.started_at + 500)
    return path


@pytest.mark.parametrize(
    ("command", "besides"),
    [
        (("report", "-o", "page.html"), {"rich"}),
        (("show",), {"jinja2"}),
        (("runs",), {"jinja2", "numpy"}),
        (("export", "--format", "json"), {"jinja2", "rich"}),
    ],
)
def test_a_command_that_reads_a_store_imports_no_more_than_it_needs(
    store: Path, tmp_path: Path, command: tuple[str, ...], besides: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *command],
        cwd=tmp_path,
        env=os.environ | {"RIGCTL_STORE": str(store), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    assert (HEAVY | besides) & set(modules) == set()
