"""`rigctl report --theme`, `--fragment` and `--compare`, as a user calls them."""

from collections.abc import Sequence
from pathlib import Path

import builders
import pytest
from in_process import Rigctl

from rigctl.records import Repetition, RunInfo
from rigctl.store import open_store


def measured(mbps: Sequence[float], name: str) -> tuple[RunInfo, list[Repetition]]:
    cells = [builders.cell(1)]
    plan = builders.plan(cells, virtual=None, repeat=5, rig_name=name)
    return builders.run(plan), [
        builders.repetition(cells[0], [rate - 0.1 * number for rate in mbps], number=number) for number in range(1, 6)
    ]


@pytest.fixture
def earlier(rigctl: Rigctl) -> str:
    """The id of a run of a slower product; the store has a later one of a new product, which has a theme."""
    with open_store(str(rigctl.store)) as opened:
        old, _ = (
            builders.put(opened, info, repetitions, info.started_at + day * 86_400)
            for day, (info, repetitions) in enumerate((measured((900, 900), "old"), measured((941, 941.3), "new")))
        )
    (rigctl.folder / "new.yaml").write_text("name: New\nwords: {goodput: Speed}\n")
    return old


def test_a_fragment_has_everything_that_is_published(earlier: str, rigctl: Rigctl) -> None:
    out, errors = rigctl("report", "--theme", "new.yaml", "--fragment", "out")
    assert errors == ""
    files = {path.name for path in (rigctl.folder / "out").iterdir()}
    assert files == {"fragment.html", "table.svg", "table.png", "chart.svg", "chart.png", "og.png"}
    assert {Path(line).name for line in out.splitlines()} == files
    fragment = (rigctl.folder / "out" / "fragment.html").read_text()
    assert "New: 940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows." in fragment
    assert "Speed of each pair" in fragment
    _, errors = rigctl("report", earlier, "--fragment", "out")
    assert errors.startswith("No claim is made: 95.5 % of what the link allows is less than the claim's bound")


def test_a_comparison_is_a_page_in_the_theme(earlier: str, rigctl: Rigctl) -> None:
    words = ("report", "--theme", "new.yaml", "--compare", earlier, "--fragment", "out", "-o", "page.html")
    assert rigctl(*words).errors == ""
    page = (rigctl.folder / "page.html").read_text()
    assert "two runs compared" in page
    assert '<p class="brand">New</p>' in page
    assert (rigctl.folder / "out" / "fragment.html").exists()


@pytest.mark.usefixtures("earlier")
def test_a_theme_with_mistakes_is_refused_before_anything_is_written(rigctl: Rigctl) -> None:
    (rigctl.folder / "bad.yaml").write_text('name: A\ncolours: {soft: "#cccccc"}\nlogo: none.svg\n')
    errors = rigctl("report", "--theme", "bad.yaml", "--fragment", "out", code=2).errors
    assert "bad.yaml:2:17: colours: soft #cccccc on paper #ffffff" in errors
    assert "bad.yaml:3:7: logo" in errors
    assert "Traceback" not in errors
    assert not (rigctl.folder / "out").exists()
