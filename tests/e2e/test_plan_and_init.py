"""`rigctl plan` and `rigctl init` as a user types them: what is printed, what is written, which exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from user import rigctl

from rigctl.base import resources

DOCS = Path(__file__).parents[2] / "docs"


def numbers(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if re.match(r"\s+\d+\s", line)]


def test_plan_takes_the_options_of_run(tmp_path: Path) -> None:
    options = ["--rig", "loopback", "--set", "window=default", "--set", "direction=forward,both", "--duration", "500ms"]
    done = rigctl(tmp_path, "plan", "gigablox", *options, "--repeat", "2")
    assert done.returncode == 0
    assert numbers(done.stdout)[1] == ["2", "–", "1460", "1", "both", "2", "500", "ms", "1448", "–", "–"]
    assert "Total time: 8 s (8 tests × 2 repetitions)" in done.stdout
    assert "loopback, unshaped" in done.stdout


def test_mistakes_end_with_exit_code_2_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("rig: gigablox\npairs: [pi1 -> pi8]\nmatrix: {window: [64Q]}\n")
    done = rigctl(tmp_path, "plan", "t.yaml", "--set", "mss=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert '--set mss=1: mss "1": expected 88 to 32767' in done.stderr
    assert 't.yaml:2:9: pair "pi1 -> pi8": unknown node "pi8"' in done.stderr
    assert 't.yaml:3:19: window "64Q": unknown unit "Q". Use K or M, as in 64K.\n   3 | matrix' in done.stderr


def test_init_copies_a_scenario_that_then_runs_anywhere(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "init", "gigablox")
    assert done.returncode == 0
    assert "rigctl run ./gigablox.yaml" in done.stdout
    copy = tmp_path / "gigablox.yaml"
    schema, text = copy.read_text().split("\n", 1)
    assert text == (resources.scenarios() / "gigablox.yaml").read_text()
    assert schema == f"# yaml-language-server: $schema={(DOCS / 'schemas' / 'scenario.schema.json').resolve()}"
    assert rigctl(tmp_path, "plan", "./gigablox.yaml").returncode == 0


def test_init_lists_what_there_is(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "init", "--list")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "gigablox GigaBlox, seven TCP tests over two pairs" in words
    assert "das2-quick DAS-2, reduced" in words
    assert "loopback Four nodes on the loopback interface" in words


def test_init_takes_a_file_or_folder_and_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert rigctl(tmp_path, "init", "gigablox", "folder").returncode == 0
    (tmp_path / "folder" / "gigablox.yaml").write_text("mine\n")
    for place in ("folder", "folder/gigablox.yaml"):
        done = rigctl(tmp_path, "init", "gigablox", place)
        assert done.returncode == 2
        assert "gigablox.yaml exists." in done.stderr
    assert (tmp_path / "folder" / "gigablox.yaml").read_text() == "mine\n"
    assert rigctl(tmp_path, "init", "gigablox", "no/such/folder.yaml").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "said"), [(["init"], "--list"), (["init", "gigabox"], 'Did you mean "gigablox"?')]
)
def test_init_without_a_known_name_says_how_to_see_them(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = rigctl(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_plan_accepts_what_only_a_run_needs_and_touches_nothing(tmp_path: Path) -> None:
    given = [
        "--quiet",
        "--store",
        "none.db",
        "--report",
        "no/x.html",
        "--no-report",
        "--resume",
        "2026",
        "--capture",
        "1",
        "--debug",
        "-v",
    ]
    plain, done = rigctl(tmp_path, "plan", "gigablox"), rigctl(tmp_path, "plan", "gigablox", *given)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert rigctl(tmp_path, "run", "gigablox", "--dry-run").stdout == plain.stdout
    assert list(tmp_path.iterdir()) == []


def test_plan_as_json_has_every_test(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "plan", "udp", "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((DOCS / "schemas" / "plan.schema.json").read_text()))
    assert (document["ip_version"], document["total_is"]) == (4, "at least")
    first = document["tests"][0]
    assert (first["test"], first["kind"], first["settings"]["rate"]) == (1, "udp", 100_000_000)
    assert first["pairs"][0] == {"source": "pi1", "destination": "pi2", "payload_bytes": 1472, "ceiling_mbps": 957.087}


@pytest.mark.parametrize(("debug", "lines"), [([], 1), (["--debug"], 5)])
def test_debug_may_stand_behind_the_command(tmp_path: Path, debug: list[str], lines: int) -> None:
    done = rigctl(tmp_path, "plan", "nothing", *debug)
    assert done.returncode == 2
    assert ("Traceback" in done.stderr) == bool(debug)
    assert len(done.stderr.splitlines()) >= lines
    assert rigctl(tmp_path, *debug, "plan", "nothing").stderr.count("Traceback") == len(debug)


def test_init_copies_a_rig_too(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "init", "fast-ethernet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fast-ethernet-rig.yaml: a copy of the bundled rig fast-ethernet" in done.stdout
    bundled = resources.scenarios() / "rigs"
    copy = (tmp_path / "fast-ethernet-rig.yaml").read_text()
    assert copy == resources.modeline("rig") + (bundled / "fast-ethernet.yaml").read_text()
    assert rigctl(tmp_path, "plan", "nettest-blast", "--rig", "./fast-ethernet-rig.yaml").returncode == 0
    # Of a name that both have, the option says which.
    assert "rigctl init --rig gigablox" in rigctl(tmp_path, "init", "gigablox").stdout
    rigctl(tmp_path, "init", "--rig", "gigablox")
    assert (tmp_path / "gigablox-rig.yaml").read_text().endswith((bundled / "gigablox.yaml").read_text())
    assert rigctl(tmp_path, "init", "--rig", "udp").returncode == 2


def test_a_shell_completes_names(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(DOCS.parent), "_RIGCTL_COMPLETE": "complete_bash"}
    for words, expected in (("run giga", ["gigablox"]), ("plan gigablox --rig fast", ["fast-ethernet"])):
        typed = {"COMP_WORDS": f"rigctl {words}", "COMP_CWORD": str(len(words.split()))}
        command = [sys.executable, "-m", "rigctl"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment | typed, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.stdout.split() == expected


def test_the_list_of_commands_imports_none_of_them() -> None:
    heavy = ("sqlalchemy", "numpy", "pandas", "scipy", "asyncssh", "jinja2", "pydantic")
    code = f"import sys, rigctl.cli.app as a; a.exit_code(['-h']); print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]", "each start of rigctl would take tenths of a second more"
