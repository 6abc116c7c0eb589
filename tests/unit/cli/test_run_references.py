"""How runs are named: every command that takes a run understands `latest` and `latest~N`."""

from pathlib import Path

import builders
import compared_runs
import pytest

from rigctl.cli.app import exit_code
from rigctl.cli.options import UNFINISHED, with_resumed
from rigctl.store import open_store


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--format", "junit"),
        ("tag",),
        ("regress", "--format", "json"),
        ("accept", "--because", "new cable"),
        ("runs", "rm", "--yes"),
    ],
)
def test_every_command_that_takes_a_run_knows_latest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    address, runs = f"sqlite:///{tmp_path / 'store.db'}", []
    with open_store(address) as store:
        for hour in range(3):
            view = compared_runs.view(compared_runs.cells(1), seed=hour)
            runs.append(builders.put(store, view.info, view.every, view.info.started_at + 3600 * hour))
    assert exit_code([*words, "latest~1", "--store", address]) == 0
    said = capsys.readouterr().out
    assert runs[1] in said
    assert runs[0] not in said


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["run", "s.yaml", "--resume"], ["run", "s.yaml", "--resume", UNFINISHED]),
        (["run", "--resume", "s.yaml"], ["run", "--resume", UNFINISHED, "s.yaml"]),
        (["run", "s.yaml", "--resume", "latest"], ["run", "s.yaml", "--resume", "latest"]),
        (["run", "s.yaml"], ["run", "s.yaml"]),
    ],
)
def test_resume_needs_no_value(words: list[str], made: list[str]) -> None:
    assert with_resumed(words) == made
