"""`rigctl report --theme`, `--fragment` and `--compare`, as a user calls them."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import builders
import pytest
import user

from rigctl.records import Repetition, RunInfo
from rigctl.store import open_store


def measured(mbps: Sequence[float], name: str) -> tuple[RunInfo, list[Repetition]]:
    cells = [builders.cell(1)]
    plan = builders.plan(cells, virtual=None, repeat=5, rig_name=name)
    return builders.run(plan), [
        builders.repetition(cells[0], [rate - 0.1 * number for rate in mbps], number=number) for number in range(1, 6)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two runs: the earlier one of a slower product."""
    path = tmp_path / "r.db"
    with open_store(str(path)) as opened:
        for day, (info, repetitions) in enumerate((measured((900, 900), "old"), measured((941, 941.3), "new"))):
            builders.put(opened, info, repetitions, info.started_at + day * 86_400)
    (tmp_path / "new.yaml").write_text("name: New\nwords: {goodput: Speed}\n")
    return path


def rigctl(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return user.rigctl(store.parent, *words, RIGCTL_STORE=str(store))


def test_a_fragment_has_everything_that_is_published(store: Path) -> None:
    done = rigctl(store, "report", "--theme", "new.yaml", "--fragment", "out")
    assert (done.returncode, done.stderr) == (0, "")
    files = {path.name for path in (store.parent / "out").iterdir()}
    assert files == {"fragment.html", "table.svg", "table.png", "chart.svg", "chart.png", "og.png"}
    assert {Path(line).name for line in done.stdout.splitlines()} == files
    fragment = (store.parent / "out" / "fragment.html").read_text()
    assert "New: 940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows." in fragment
    assert "Speed of each pair" in fragment
    old = min(run["run"] for run in json.loads(rigctl(store, "runs", "--json").stdout)["runs"])
    done = rigctl(store, "report", old, "--fragment", "out")
    assert done.returncode == 0
    assert done.stderr.startswith("No claim is made: 95.5 % of what the link allows is less than the claim's bound")


def test_a_comparison_is_a_page_in_the_theme(store: Path) -> None:
    slow = min(run["run"] for run in json.loads(rigctl(store, "runs", "--json").stdout)["runs"])
    done = rigctl(store, "report", "--theme", "new.yaml", "--compare", slow, "--fragment", "out", "-o", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    page = (store.parent / "page.html").read_text()
    assert "two runs compared" in page
    assert '<p class="brand">New</p>' in page
    assert (store.parent / "out" / "fragment.html").exists()


def test_a_theme_with_mistakes_is_refused_before_anything_is_written(store: Path) -> None:
    (store.parent / "bad.yaml").write_text('name: A\ncolours: {soft: "#cccccc"}\nlogo: none.svg\n')
    done = rigctl(store, "report", "--theme", "bad.yaml", "--fragment", "out")
    assert done.returncode == 2
    assert "bad.yaml:2:17: colours: soft #cccccc on paper #ffffff" in done.stderr
    assert "bad.yaml:3:7: logo" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (store.parent / "out").exists()
