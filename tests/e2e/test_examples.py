"""The examples and the page on Python, as a reader runs them: a workflow's steps, a job's script, pytest, code.

Their runs are replayed, but for that of the slow link.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from processes import DEADLINE_S, program
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from replay import EVERY, SCRIPT
from user import User

ROOT = Path(__file__).parents[2]
INSTALL = "Install"


@pytest.fixture
def lab(replayed: User) -> User:
    """A checkout of the examples, and `rigctl` in the path."""
    shutil.copytree(ROOT / "examples", replayed.folder, dirs_exist_ok=True)
    rigctl = program(replayed.folder / "bin" / "rigctl", f'exec {sys.executable} -m rigctl "$@"')
    replayed.environment["PATH"] = f"{rigctl.parent}:{os.environ['PATH']}"
    return replayed


def done(user: User, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    how: dict[str, Any] = {"text": True, "capture_output": True, "timeout": DEADLINE_S}
    return subprocess.run(command, cwd=user.folder, env=user.environment | variables, **how)


def shell(user: User, script: str, **variables: str) -> int:
    return done(user, "bash", "-eo", "pipefail", "-c", script, **variables).returncode


def workflow(user: User, **variables: str) -> list[tuple[str, int]]:
    """Each step of the workflow that ran, with its exit code: after a failure only those that always run."""
    (job,) = yaml.safe_load((user.folder / "github-actions.yml").read_text())["jobs"].values()
    codes: list[tuple[str, int]] = []
    for step in job["steps"]:
        failed = any(code for _, code in codes)
        if "run" in step and step["name"] != INSTALL and (not failed or step.get("if") == "always()"):
            codes.append((step["name"], shell(user, step["run"], **variables)))
    return codes


def installations() -> list[tuple[str, dict[str, str]]]:
    examples = ROOT / "examples"
    (job,) = yaml.safe_load((examples / "github-actions.yml").read_text())["jobs"].values()
    other = yaml.safe_load((examples / "gitlab-ci.yml").read_text())["network"]
    (script,) = [step["run"] for step in job["steps"] if step.get("name") == INSTALL]
    return [(script, job["env"]), ("\n".join(other["before_script"]), other["variables"])]


def failures(user: User) -> list[str]:
    cases = ElementTree.parse(user.folder / "junit.xml").iter("testcase")
    return [case.attrib["name"] for case in cases if case.find("failure") is not None]


def test_the_workflow_passes_and_leaves_a_summary_and_test_results(lab: User) -> None:
    lab.replay.says(measured={EVERY: [94.0]})
    summary = lab.folder / "summary.md"
    assert workflow(lab, GITHUB_STEP_SUMMARY=str(summary)) == [("Measure", 0), ("Summary", 0), ("Test results", 0)]
    assert "| As expected" in summary.read_text()
    assert failures(lab) == []
    assert "<html" in (lab.folder / "report.html").read_text()


def test_the_job_fails_where_an_expectation_does_and_still_leaves_its_reports(lab: User) -> None:
    lab.replay.says(measured={EVERY: [79.0]})
    job: dict[str, Any] = yaml.safe_load((lab.folder / "gitlab-ci.yml").read_text())["network"]
    assert shell(lab, "\n".join(job["script"])) == 1
    assert shell(lab, "\n".join(job["after_script"])) == 0
    assert failures(lab) == ["test 1, dublin → cork: goodput >= 80M per pair"]
    reported = [*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()]
    assert all((lab.folder / name).stat().st_size for name in reported)
    metrics = {family.name for family in text_string_to_metric_families((lab.folder / "metrics.txt").read_text())}
    assert {"rigctl_pair_goodput_bytes_per_second", "rigctl_expectation_met"} <= metrics


@pytest.mark.parametrize(("script", "variables"), installations(), ids=["github", "gitlab"])
def test_a_job_installs_the_pinned_wheel_and_no_other(lab: User, script: str, variables: dict[str, str]) -> None:
    wheel, asked = lab.folder / variables["RIGCTL_WHEEL"], lab.folder / "asked"
    wheel.parent.mkdir()
    wheel.write_bytes(b"as it was built")
    program(lab.folder / "bin" / "pip", f'echo "$@" >>{asked}')
    assert shell(lab, script, **variables) != 0
    assert not asked.exists()
    pinned = variables | {"RIGCTL_SHA256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    assert shell(lab, script, **pinned) == 0
    command, installed = asked.read_text().split()
    assert (command, installed.removesuffix("[openmetrics]")) == ("install", variables["RIGCTL_WHEEL"])


def test_the_pytest_file_fails_on_a_slower_link(lab: User) -> None:
    del lab.environment[SCRIPT]
    scenario = lab.folder / "link.yaml"
    scenario.write_text(f"{scenario.read_text()}max_skew: 1s\n")  # of the real link: other tests run beside this one
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_link.py")
    ran = done(lab, *command, RIG_SET="links.rate=10M")
    assert ran.returncode == 1, ran.stdout
    assert "goodput " in ran.stdout
    assert ">= 80M per pair" in ran.stdout
    assert "1 passed" in ran.stdout


def test_every_line_on_the_page_about_python_runs(lab: User) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "reference" / "python.md").read_text(), re.DOTALL)
    assert len([line for line in blocks[0].splitlines() if line]) == 6
    ran = done(lab, sys.executable, "-c", "\n".join(blocks))
    assert ran.returncode == 0, ran.stderr
    assert "['test 1: 65536 bytes', 'test 2: 409600 bytes']" in ran.stdout
    assert re.search(r"^1 +\d{2,}\.\d", ran.stdout, re.MULTILINE), "the mean goodput of test 1"
    said = 'window "64Q": unknown unit "Q". Use K or M, as in 64K.'
    assert said in ran.stdout
    assert said in blocks[-1]
