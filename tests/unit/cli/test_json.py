"""Commands on stored runs: `--json` prints one document, as its schema has it, and every command knows `latest~N`."""

import json
from pathlib import Path
from typing import Any

import builders
import compared_runs
import jsonschema
import pytest
from in_process import Rigctl

from rigctl.store import open_store

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.fixture
def runs(rigctl: Rigctl) -> list[str]:
    """The ids of three runs, which began long ago."""
    with open_store(str(rigctl.store)) as store:
        views = [compared_runs.view(compared_runs.cells(1), seed=hour) for hour in range(3)]
        return [
            builders.put(store, view.info, view.every, view.info.started_at + 3600 * hour, tags={"firmware": f"{hour}"})
            for hour, view in enumerate(views)
        ]


def printed(rigctl: Rigctl, schema: str, *words: str) -> Any:
    made = json.loads(rigctl(*words, "--json").out)
    jsonschema.validate(made, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return made


def test_of_the_store(runs: list[str], rigctl: Rigctl) -> None:
    assert [run["run"] for run in printed(rigctl, "runs", "runs")["runs"]] == runs
    assert printed(rigctl, "regress", "regress")["run"] == runs[-1]
    assert printed(rigctl, "tag", "tag", "latest~1") == {"version": 1, "run": runs[1], "tags": {"firmware": "1"}}
    pruned = printed(rigctl, "prune", "runs", "prune", "--keep", "1h")
    assert ([one["run"] for one in pruned["runs"]], pruned["removed"]) == (runs[:2], False)
    assert pruned["kept"] == [{"run": runs[2], "why": "the latest of its scenario and rig"}]
    assert pruned["runs"][0]["bytes"] > 0


def test_of_what_is_calculated(rigctl: Rigctl) -> None:
    options = ("--rate", "1G,10G", "--payload", "1448", "--timestamps", "--window", "64K", "--rtt", "1ms,2ms")
    made = printed(rigctl, "expect", "expect", *options)
    assert [(one["rate_mbps"], one["link_mbps"]) for one in made["rates"]] == [(1000, 941.482), (10000, 9414.824)]
    assert [one["goodput_mbps"] for one in made["windows"]] == [524.288, 262.144]


def test_of_what_comes_with_rigctl(rigctl: Rigctl) -> None:
    listed = printed(rigctl, "init-list", "init", "--list")
    assert all(Path(one["file"]).is_file() for one in [*listed["scenarios"], *listed["rigs"]])
    assert {one["name"] for one in listed["scenarios"]} > {"gigablox", "das2"}
    rigctl("init", "gigablox", "--json", code=2)
    assert all(len(one["sha256"]) == 64 for one in printed(rigctl, "agents", "agent", "list")["agents"])
    assert printed(rigctl, "rig-status", "rig", "status", "gigablox") == {"version": 1, "rig": "gigablox", "up": []}


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
def test_every_command_that_takes_a_run_knows_latest(runs: list[str], rigctl: Rigctl, words: tuple[str, ...]) -> None:
    out = rigctl(*words, "latest~1").out
    assert runs[1] in out
    assert runs[0] not in out
