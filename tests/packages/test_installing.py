"""Installing as the pages say: without internet from a wheelhouse, and README's way to the first table."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, named_in_ssh_config
from packaged import CLOSED, output_of
from shell_blocks import fences

HOSTS = ("node01", "node02")
pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]


def test_a_wheelhouse_installs_with_the_network_closed(wheelhouse: Path, tmp_path: Path) -> None:
    output_of("python3", "-m", "venv", tmp_path / "venv")
    line = (wheelhouse / "INSTALL").read_text().split()
    output_of(*CLOSED, tmp_path / "venv/bin" / line[0], *line[1:], cwd=wheelhouse.parent)
    rigctl = (*CLOSED, tmp_path / "venv/bin/rigctl")
    version = output_of(*rigctl, "--version")
    assert re.fullmatch(r"rigctl \d+\.\d+\.\d+\n", version)
    assert "941.5" in output_of(*rigctl, "plan", "gigablox", cwd=tmp_path)
    assert output_of(*CLOSED, tmp_path / "venv/bin/python", "-m", "rigctl", "--version") == version


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path, HOSTS, named=True) as made:
        named_in_ssh_config(made, HOSTS)
        yield made


def test_five_commands_of_the_readme_lead_to_the_first_table(lab: Lab, wheel: Path, wheelhouse: Path) -> None:
    (block,) = (each for each in fences() if each.page == "README.md" and "-m venv" in each.text)
    commands = list(block.commands())
    assert len(commands) == 5
    shutil.copy(wheel, lab.folder)
    short = [line.replace("--duration 10s", "--duration 1s --set max_skew=1s") for line in commands]
    assert short != commands
    # The hosts' controller has no internet: pip finds there what the index would give.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    environment |= {"HOME": str(lab.folder), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheelhouse), "COLUMNS": "140"}
    command = lab.inside("ctl", "bash", "-euxc", "\n".join(short))
    printed = output_of(*command, cwd=lab.folder, environment=environment)
    _, _, table = printed.partition("Goodput")
    assert re.findall(r"^ +(\d) ", table, re.MULTILINE) == list("1234567"), printed
    assert (lab.folder / ".local/share/rigctl/rigctl.db").is_file()
