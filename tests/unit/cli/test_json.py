"""Commands on stored runs: `--json` prints one document, as its schema has it, and every command knows `latest~N`."""

import json
from pathlib import Path
from typing import Any

import builders
import compared_runs
import jsonschema
import pytest

from rigctl.cli.app import exit_code
from rigctl.store import open_store

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with three runs, which began long ago."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = f"sqlite:///{tmp_path / 'store.db'}"
    with open_store(made) as store:
        for hour in range(3):
            view = compared_runs.view(compared_runs.cells(1), seed=hour)
            at = view.info.started_at + 3600 * hour
            builders.put(store, view.info, view.every, at, tags={"firmware": f"{hour}"})
    return made


def printed(capsys: pytest.CaptureFixture[str], schema: str, *words: str) -> Any:
    assert exit_code([*words, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    jsonschema.validate(made, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return made


def test_of_the_store(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--store", address)
    runs = [run["run"] for run in printed(capsys, "runs", "runs", *at)["runs"]]
    assert printed(capsys, "regress", "regress", *at)["run"] == runs[-1]
    assert printed(capsys, "tag", "tag", "latest~1", *at) == {"version": 1, "run": runs[1], "tags": {"firmware": "1"}}
    pruned = printed(capsys, "prune", "runs", "prune", "--keep", "1h", *at)
    assert ([one["run"] for one in pruned["runs"]], pruned["removed"]) == (runs[:2], False)
    assert pruned["kept"] == [{"run": runs[2], "why": "the latest of its scenario and rig"}]
    assert pruned["runs"][0]["bytes"] > 0


def test_of_what_is_calculated(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--rate", "1G,10G", "--payload", "1448", "--timestamps", "--window", "64K", "--rtt", "1ms,2ms")
    made = printed(capsys, "expect", "expect", *options)
    assert [(one["rate_mbps"], one["link_mbps"]) for one in made["rates"]] == [(1000, 941.482), (10000, 9414.824)]
    assert [one["goodput_mbps"] for one in made["windows"]] == [524.288, 262.144]


def test_of_what_comes_with_rigctl(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert address
    listed = printed(capsys, "init-list", "init", "--list")
    assert all(Path(one["file"]).is_file() for one in [*listed["scenarios"], *listed["rigs"]])
    assert {one["name"] for one in listed["scenarios"]} > {"gigablox", "das2"}
    assert exit_code(["init", "gigablox", "--json"]) == 2
    assert all(len(one["sha256"]) == 64 for one in printed(capsys, "agents", "agent", "list")["agents"])
    assert printed(capsys, "rig-status", "rig", "status", "gigablox") == {"version": 1, "rig": "gigablox", "up": []}


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
    address: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with open_store(address) as store:
        runs = store.run_ids()
    assert exit_code([*words, "latest~1", "--store", address]) == 0
    printed = capsys.readouterr().out
    assert runs[1] in printed
    assert runs[0] not in printed
