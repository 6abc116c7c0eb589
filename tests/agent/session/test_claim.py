"""The lock of FreeBSD nodes, files in /tmp, with the agent's own source on Linux: what somebody puts there first."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from known import known
from talk import AGENTS

SOURCE = AGENTS.parent / "tests" / "agent" / "claim.c"
Claim = Callable[..., tuple[str, subprocess.Popen[str]]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("claim") / "claim"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", str(made), str(SOURCE)], check=True)
    return made


@pytest.fixture
def claim(program: Path) -> Iterator[Claim]:
    """Yield a function that claims a path; it returns what the program says, and the program, which holds the claim."""
    with ExitStack() as stack:

        def claimed(path: Path, *words: str) -> tuple[str, subprocess.Popen[str]]:
            pipe = subprocess.PIPE
            process = subprocess.Popen([program, path, *words], stdin=pipe, stdout=pipe, text=True)
            stack.callback(process.wait)
            stack.callback(known(process.stdin).close)
            return known(process.stdout).readline().strip(), process

        yield claimed


def test_a_file_is_claimed_by_one_process_at_a_time_whoever_made_it(claim: Claim, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch(mode=0o644)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)  # of `nobody`
    said, holder = claim(file)
    assert (said, claim(file)[0]) == ("claimed", "taken")
    holder.kill()
    holder.wait()
    assert claim(file)[0] == "claimed"


def test_a_link_a_fifo_and_a_second_name_are_refused_at_once_and_left_as_they_are(claim: Claim, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("text")
    link, fifo, second, folder = (tmp_path / name for name in ("link", "fifo", "second", "folder"))
    link.symlink_to(victim)
    os.mkfifo(fifo)
    second.hardlink_to(victim)
    folder.mkdir()
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    refused = [claim(path)[0] for path in (link, fifo, second, folder, dangling)]
    assert "claimed" not in refused
    assert refused[1:3] == ["Operation not permitted"] * 2
    assert (victim.read_text(), (tmp_path / "made").exists()) == ("text", False)


def test_a_file_that_is_removed_before_it_is_locked_is_not_claimed(claim: Claim, tmp_path: Path) -> None:
    """Two processes would otherwise hold two files of the same name."""
    assert claim(tmp_path / "lock", "remove")[0] == "Resource temporarily unavailable"
