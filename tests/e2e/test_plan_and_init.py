"""`rigctl plan` and `rigctl init` as a user types them: what is printed, what is written, which exit code."""

import re
from pathlib import Path

import pytest
from user import rigctl

from rigctl import resources


def numbers(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if re.match(r"\s+\d+\s", line)]


def test_plan_shows_the_seven_tests_with_their_ceilings_and_the_time(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "plan", "gigablox")
    assert (done.returncode, done.stderr) == (0, "")
    rows = numbers(done.stdout)
    assert [row[1:4] for row in rows] == [
        ["64K", "1460", "1"],
        ["64K", "1460", "5"],
        ["64K", "8960", "1"],
        ["200K", "1460", "1"],
        ["64K", "8960", "5"],
        ["200K", "8960", "1"],
        ["200K", "8960", "5"],
    ]
    assert {tuple(row[4:]) for row in rows} == {("2", "1m", "00s", "1448", "941.5", "1883.0")}
    assert "Total time: 7m 00s (7 cells)" in done.stdout
    assert "MSS 8960 does not fit into MTU 1500: 1448 will go over the wire." in done.stdout
    assert "TCP timestamps" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_plan_takes_the_options_of_run(tmp_path: Path) -> None:
    options = ["--rig", "loopback", "--set", "window=default", "--set", "direction=forward,both", "--duration", "500ms"]
    done = rigctl(tmp_path, "plan", "gigablox", *options, "--repeat", "2")
    assert done.returncode == 0
    assert numbers(done.stdout)[1] == ["2", "–", "1460", "1", "both", "2", "500", "ms", "1448", "–", "–"]
    assert "Total time: 8 s (8 cells × 2 repetitions)" in done.stdout
    assert "loopback, unshaped" in done.stdout


def test_a_long_table_is_cut(tmp_path: Path) -> None:
    axes = f"{{parallel: {list(range(1, 129))}, mss: {list(range(1000, 1010))}}}"
    (tmp_path / "t.yaml").write_text(f"rig: gigablox\npairs: pi1 -> pi2\nmatrix: {axes}\n")
    done = rigctl(tmp_path, "plan", "t.yaml")
    assert len(numbers(done.stdout)) == 100
    assert "… and 1,180 more cells: --all shows them." in done.stdout


def test_plan_shows_conditions_pairs_and_what_a_trunk_leaves_of_their_sum(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "plan", "das2-quick", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(numbers(done.stdout)) == 120
    for line in (
        "Condition no resize 1500: MTU 1500; windows are set and locked",
        "Condition resize 8192: MTU 8192; windows are where buffers start",
        "Pairs (12): node001 -> node101, node002 -> node102, node003 -> node103, … node012 -> node112.",
        "Pairs across the trunk between force10 and cisco share its 8 Gbit/s.",
    ):
        assert line in done.stdout
    sums = [row[-1] for row in numbers(done.stdout)]
    # 1, 4, 8, 10 and 12 pairs of a gigabit each; 8 Gbit/s of trunk hold 7531.9 at MTU 1500, 7912.5 at 8192.
    assert sums[:5] == ["941.5", "3765.9", "7531.9", "7531.9", "7531.9"]
    assert sums[-5:] == ["989.1", "3956.3", "7912.5", "7912.5", "7912.5"]
    faster = rigctl(tmp_path, "plan", "das2-quick", "--all", "--rig-set", "trunk.rate=10G")
    assert [row[-1] for row in numbers(faster.stdout)][-2:] == ["9890.6", "9890.6"]


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
    assert copy.read_bytes() == (resources.scenarios() / "gigablox.yaml").read_bytes()
    assert rigctl(tmp_path, "plan", "./gigablox.yaml").returncode == 0


@pytest.mark.parametrize("destination", [[], ["gigablox.yaml"], ["."]])
def test_init_never_overwrites(tmp_path: Path, destination: list[str]) -> None:
    (tmp_path / "gigablox.yaml").write_text("mine\n")
    done = rigctl(tmp_path, "init", "gigablox", *destination)
    assert done.returncode == 2
    assert "stays as it is" in done.stderr
    assert (tmp_path / "gigablox.yaml").read_text() == "mine\n"


def test_init_takes_a_file_or_folder_and_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert rigctl(tmp_path, "init", "gigablox", "folder").returncode == 0
    assert (tmp_path / "folder" / "gigablox.yaml").exists()
    assert rigctl(tmp_path, "init", "gigablox", "other.yaml").returncode == 0
    assert (tmp_path / "other.yaml").exists()
    assert rigctl(tmp_path, "init", "gigablox", "no/such/folder.yaml").returncode == 2


def test_init_lists_what_there_is(tmp_path: Path) -> None:
    done = rigctl(tmp_path, "init", "--list")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "gigablox GigaBlox, seven TCP tests over two pairs" in words
    assert "das2-quick DAS-2, thinned" in words
    assert "loopback Four nodes on the loopback interface" in words


@pytest.mark.parametrize(
    ("arguments", "said"), [(["init"], "--list"), (["init", "gigabox"], 'Did you mean "gigablox"?')]
)
def test_init_without_a_known_name_says_how_to_see_them(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = rigctl(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []
