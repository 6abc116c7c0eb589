"""`rigctl regress` and `accept`, as a user has them: a rig that has become slower, measured again at once."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from replay import EVERY
from user import User

from rigctl.records import CONFIRMS, RunStatus

SCENARIO = "title: Nightly\nrig: fast-ethernet\npairs: [dublin -> cork]\nduration: 800ms\nmatrix: {congestion: cubic}\n"
DAY_S = 86_400.0
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def slower(replayed: User) -> User:
    """Someone whose rig was twice as fast, with another kernel, on each of eight nights before this one."""
    replayed.replay.says(measured={EVERY: [45.0]})
    replayed.rigctl("run", replayed.scenario(SCENARIO), "--no-report")
    with replayed.store() as store:
        info = store.run()
        (measured,) = store.repetitions(info.run)
        facts = {node: known | {"kernel": "Linux 5.10.0 x86_64"} for node, known in info.facts.items()}
        for night in range(1, 9):
            at = info.started_at - night * DAY_S
            earlier = store.begin(info.plan, info.versions, facts, at)
            scaled = [replace(flow, bytes=round((flow.bytes or 0) * (2.0 + night / 1e4))) for flow in measured.flows]
            store.add(earlier, replace(measured, flows=tuple(scaled), started_at=at))
            store.finish(earlier, RunStatus.COMPLETE, at + 5)
    return replayed


def test_a_slower_rig_is_measured_again_reported_with_what_changed_and_accepted(slower: User) -> None:
    # Mistakes are refused before anything is measured.
    assert "expected percent" in slower.rigctl("regress", "--bound", "much", code=2)
    assert "--format md" in slower.rigctl("regress", "--brief", code=2)
    assert "expected a reason" in slower.rigctl("accept", "--because", " ", code=2)
    slower.scenario(SCENARIO.replace("800ms", "800ms\nomit: 100ms").replace("cubic", "reno"))
    assert "the scenario has changed since" in slower.rigctl("regress", "--confirm", "--scenario", "s.yaml", code=2)
    slower.scenario(SCENARIO)

    night = json.loads(slower.rigctl("runs", "--json"))["runs"][-1]["run"]
    assert "1 figure differs in this run only" in slower.rigctl("regress")
    said = slower.rigctl("regress", "--confirm", "--format", "json", code=1)
    found = json.loads(said[said.index("{") : said.rindex("}") + 1])
    jsonschema.validate(found, json.loads((DOCS / "schemas" / "regress.schema.json").read_text()))
    (change,) = found["news"]
    assert change["subject"]["kind"] == "pair"
    assert -51 < change["change_pct"] < -49
    assert change["confirmed"]
    assert {(fact["node"], fact["fact"]) for fact in change["facts"]} == {("dublin", "kernel"), ("cork", "kernel")}
    with slower.store() as store:
        assert store.run(found["confirmed_by"]).tags == {CONFIRMS: night}

    # The latest run is now the one that confirms; it stands for the one that it confirms.
    text = slower.rigctl("regress", "--format", "md", code=1)
    assert "dublin → cork" in text
    assert "Linux 5.10.0 x86" in text
    report = slower.folder / "junit.xml"
    slower.rigctl("regress", "--format", "junit", "-o", report.name, code=1)
    assert ElementTree.parse(report).getroot().get("failures") == "1"

    slower.rigctl("accept", "--because", "the kernel of the lab's image")
    text = slower.rigctl("regress")
    assert "no change found in 1 test" in text.lower()
    assert "the kernel of the lab's image" in text
