"""README's way to one's own machines, as it stands: four hosts with OpenSSH, whose names no bundled scenario knows."""

import json
import shlex
from collections.abc import Iterator

import pytest
from openssh_lab import Lab, laboratory, named_in_ssh_config
from shell_blocks import fences, shortened

HOSTS = ("node01", "node02", "node03", "node04")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Hosts that the user's ~/.ssh/config names, as `ssh node01` would reach them."""
    with laboratory(tmp_path_factory.mktemp("own"), HOSTS, named=True) as made:
        named_in_ssh_config(made, HOSTS)
        yield made


def typed(lab: Lab, words: list[str], code: int = 0) -> str:
    return "".join(lab.rigctl(*words, code=code))


def commands_of(page: str) -> list[list[str]]:
    """Return rigctl's commands in the page's block that makes a rig file."""
    found = next(fence for fence in fences() if fence.page == page and "rigctl rig init" in fence.text)
    return [words for line in found.commands() if (words := shlex.split(line))[0] == "rigctl"]


def test_the_commands_of_the_readme_work_on_hosts_of_any_name(lab: Lab) -> None:
    offered = ""
    for _, *words in commands_of("README.md"):
        said = typed(lab, shortened(words))
        if words[:2] == ["rig", "init"]:
            offered = next(line for line in said.splitlines() if line.startswith("  rigctl run "))
    runs = json.loads(typed(lab, ["runs", "--json"]))["runs"]
    assert [(run["scenario"], run["rig"], run["tests"]) for run in runs] == [("gigablox", "mylab", 1)]
    rows = json.loads(typed(lab, ["export", "--format", "json"]))
    assert {(row["source"], row["destination"]) for row in rows} == {("node01", "node02")}

    assert len(json.loads(typed(lab, ["plan", *shlex.split(offered)[2:], "--json"]))["tests"]) == 7


def test_a_scenario_of_other_nodes_ends_with_options_that_work(lab: Lab) -> None:
    said = typed(lab, ["plan", "gigablox", "--rig", "lab.yaml"], code=2)
    assert 'unknown node "pi1"' in said
    words = shlex.split(said.strip().splitlines()[-1])
    chosen = [words[at + 1].rstrip(",:") for at, word in enumerate(words) if word == "--set"]
    assert len(chosen) == 2
    for each in chosen:
        typed(lab, ["plan", "gigablox", "--rig", "lab.yaml", "--set", each])
