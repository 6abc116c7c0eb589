"""`rigctl plan` and `rigctl init` as a user types them: what is printed, what is written, which exit code."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from in_process import Rigctl

from rigctl.base import resources

DOCS = Path(__file__).parents[3] / "docs"


def numbers(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if re.match(r"\s+\d+\s", line)]


def test_plan_takes_the_options_of_run(rigctl: Rigctl) -> None:
    options = ["--rig", "loopback", "--set", "window=default", "--set", "direction=forward,both", "--duration", "500ms"]
    out, _ = rigctl("plan", "gigablox", *options, "--repeat", "2")
    assert numbers(out)[1] == ["2", "–", "1460", "1", "both", "2", "500", "ms", "1448", "–", "–"]
    assert "Total time: 8 s (8 tests × 2 repetitions)" in out
    assert "loopback, unshaped" in out


def test_mistakes_end_with_exit_code_2_and_no_traceback(rigctl: Rigctl) -> None:
    (rigctl.folder / "t.yaml").write_text("rig: gigablox\npairs: [pi1 -> pi8]\nmatrix: {window: [64Q]}\n")
    out, errors = rigctl("plan", "t.yaml", "--set", "mss=1", code=2)
    assert out == ""
    assert "Traceback" not in errors
    assert '--set mss=1: mss "1": expected 88 to 32767' in errors
    assert 't.yaml:2:9: pair "pi1 -> pi8": unknown node "pi8"' in errors
    assert 't.yaml:3:19: window "64Q": unknown unit "Q". Use K or M, as in 64K.\n   3 | matrix' in errors


def test_init_copies_a_scenario_that_then_runs_anywhere(rigctl: Rigctl) -> None:
    assert "rigctl run ./gigablox.yaml" in rigctl("init", "gigablox").out
    schema, text = (rigctl.folder / "gigablox.yaml").read_text().split("\n", 1)
    assert text == (resources.scenarios() / "gigablox.yaml").read_text()
    assert schema == f"# yaml-language-server: $schema={(DOCS / 'schemas' / 'scenario.schema.json').resolve()}"
    rigctl("plan", "./gigablox.yaml")


def test_init_lists_what_there_is(rigctl: Rigctl) -> None:
    words = " ".join(rigctl("init", "--list").out.split())
    assert "gigablox GigaBlox, seven TCP tests over two pairs" in words
    assert "das2-quick DAS-2, reduced" in words
    assert "loopback Four nodes on the loopback interface" in words


def test_init_takes_a_file_or_folder_and_never_overwrites(rigctl: Rigctl) -> None:
    (rigctl.folder / "folder").mkdir()
    rigctl("init", "gigablox", "folder")
    (rigctl.folder / "folder" / "gigablox.yaml").write_text("mine\n")
    for place in ("folder", "folder/gigablox.yaml"):
        assert "gigablox.yaml exists." in rigctl("init", "gigablox", place, code=2).errors
    assert (rigctl.folder / "folder" / "gigablox.yaml").read_text() == "mine\n"
    rigctl("init", "gigablox", "no/such/folder.yaml", code=2)


@pytest.mark.parametrize(
    ("arguments", "said"), [(["init"], "--list"), (["init", "gigabox"], 'Did you mean "gigablox"?')]
)
def test_init_without_a_known_name_says_how_to_see_them(rigctl: Rigctl, arguments: list[str], said: str) -> None:
    assert said in rigctl(*arguments, code=2).errors
    assert list(rigctl.folder.iterdir()) == []


def test_plan_accepts_what_only_a_run_needs_and_touches_nothing(rigctl: Rigctl) -> None:
    of_a_run = "--quiet --store none.db --report no/x.html --no-report --resume 2026 --capture 1 --debug -v"
    plain = rigctl("plan", "gigablox").out
    assert rigctl("plan", "gigablox", *of_a_run.split()).out == plain
    assert rigctl("run", "gigablox", "--dry-run").out == plain
    assert list(rigctl.folder.iterdir()) == []


def test_plan_as_json_has_every_test(rigctl: Rigctl) -> None:
    document = json.loads(rigctl("plan", "udp", "--json").out)
    jsonschema.validate(document, json.loads((DOCS / "schemas" / "plan.schema.json").read_text()))
    assert (document["ip_version"], document["total_is"]) == (4, "at least")
    first = document["tests"][0]
    assert (first["test"], first["kind"], first["settings"]["rate"]) == (1, "udp", 100_000_000)
    assert first["pairs"][0] == {"source": "pi1", "destination": "pi2", "payload_bytes": 1472, "ceiling_mbps": 957.087}


@pytest.mark.parametrize(("debug", "lines"), [([], 1), (["--debug"], 5)])
def test_debug_may_stand_behind_the_command(rigctl: Rigctl, debug: list[str], lines: int) -> None:
    errors = rigctl("plan", "nothing", *debug, code=2).errors
    assert ("Traceback" in errors) == bool(debug)
    assert len(errors.splitlines()) >= lines
    assert rigctl(*debug, "plan", "nothing", code=2).errors.count("Traceback") == len(debug)


def test_init_copies_a_rig_too(rigctl: Rigctl) -> None:
    out, errors = rigctl("init", "fast-ethernet")
    assert errors == ""
    assert "fast-ethernet-rig.yaml: a copy of the bundled rig fast-ethernet" in out
    bundled = resources.scenarios() / "rigs"
    copy = (rigctl.folder / "fast-ethernet-rig.yaml").read_text()
    assert copy == resources.modeline("rig") + (bundled / "fast-ethernet.yaml").read_text()
    rigctl("plan", "nettest-blast", "--rig", "./fast-ethernet-rig.yaml")
    # Of a name that both have, the option says which.
    assert "rigctl init --rig gigablox" in rigctl("init", "gigablox").out
    rigctl("init", "--rig", "gigablox")
    assert (rigctl.folder / "gigablox-rig.yaml").read_text().endswith((bundled / "gigablox.yaml").read_text())
    rigctl("init", "--rig", "udp", code=2)
