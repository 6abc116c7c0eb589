import re
from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from in_process import Rigctl

from rigctl.base import resources
from rigctl.base.errors import InputError
from rigctl.cli.commands.rig import check_place, find_hosts, write_rig_file
from rigctl.discovery.inventory import Inventory

DOCS = Path(__file__).parents[3] / "docs"


def test_plan_takes_the_options_of_run(rigctl: Rigctl) -> None:
    options = ["--rig", "loopback", "--set", "window=default", "--set", "direction=forward,both", "--duration", "500ms"]
    out = rigctl("plan", "gigablox", *options, "--repeat", "2", "--all").out
    assert "2 1460 1 both 1448" in [" ".join(line.split()) for line in out.splitlines()]  # what tests share is above
    assert "8 tests = MSS 1460, 8960 × flows 1, 5 × direction forward, both." in out
    assert "Every test: duration 500 ms, congestion cubic." in out
    assert "Ceiling: – Mbit/s per pair, – Mbit/s of the sum." in out
    assert "Total time: 8 s (8 tests × 2 repetitions)" in out
    assert "loopback, unshaped" in out


def test_plan_is_a_summary_and_says_what_an_axis_multiplies(rigctl: Rigctl) -> None:
    lines = rigctl("plan", "gigablox", "--set", "window=64K,1M").out.splitlines()
    assert "8 tests = window 64K, 1M × MSS 1460, 8960 × flows 1, 5." in lines
    lines = rigctl("plan", "das2").out.splitlines()
    assert "1,920 tests = 4 conditions × total window 32K–256K (4) × flows 1–10 × pairs 1–12." in lines
    lines = rigctl("plan", "gigablox", "--set", "congestion=bbr,cubic").out.splitlines()
    assert "14 tests: window 64K, 200K; MSS 1460, 8960; flows 1, 5; congestion bbr, cubic." in lines
    assert "--set congestion: 2 values × 7 rows of include (window 64K, 200K; MSS 1460, 8960; flows 1, 5)." in lines
    assert "\n--set" not in rigctl("plan", "stratus", "--set", "window=1M").out


def test_pairs_need_no_quotes(rigctl: Rigctl) -> None:
    assert "Pairs (2): pi1 -> pi2, pi3 -> pi4." in rigctl("plan", "gigablox", "--set", "pairs=pi1:pi2,pi3:pi4").out
    errors = rigctl("plan", "gigablox", "--set", "pairs=pi1-", code=2).errors
    assert re.search('the shell took ">" and made a file.*--set pairs=pi1:pi2', errors)


def test_mistakes_end_with_exit_code_2_and_no_traceback(rigctl: Rigctl) -> None:
    (rigctl.folder / "t.yaml").write_text("rig: gigablox\npairs: [pi1 -> pi2]\nmatrix: {window: [64Q]}\n")
    out, errors = rigctl("plan", "t.yaml", "--set", "mss=1", code=2)
    assert (out, "Traceback" in errors) == ("", False)
    assert '--set mss=1: mss "1": expected 88 to 32767' in errors
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
    assert "loopback Four nodes on the loopback interface" in words


def test_init_takes_a_file_or_folder_and_never_overwrites(rigctl: Rigctl) -> None:
    (rigctl.folder / "folder").mkdir()
    rigctl("init", "gigablox", "folder")
    (rigctl.folder / "folder" / "gigablox.yaml").write_text("mine\n")
    for place in ("folder", "folder/gigablox.yaml"):
        assert "gigablox.yaml exists." in rigctl("init", "gigablox", place, code=2).errors
    assert (rigctl.folder / "folder" / "gigablox.yaml").read_text() == "mine\n"
    rigctl("init", "gigablox", "no/such/folder.yaml", code=2)


def test_init_without_a_known_name_says_how_to_see_them(rigctl: Rigctl) -> None:
    assert "--list" in rigctl("init", code=2).errors
    assert 'Did you mean "gigablox"?' in rigctl("init", "gigabox", code=2).errors
    assert list(rigctl.folder.iterdir()) == []


def test_plan_accepts_what_only_a_run_needs_and_touches_nothing(rigctl: Rigctl) -> None:
    of_a_run = "--quiet --store none.db --report no/x.html --no-report --resume 2026 --capture 1 --debug -v"
    plain = rigctl("plan", "gigablox").out
    assert rigctl("plan", "gigablox", *of_a_run.split()).out == plain
    assert rigctl("run", "gigablox", "--dry-run").out == plain
    assert list(rigctl.folder.iterdir()) == []


@pytest.mark.parametrize(("debug", "lines"), [([], 1), (["--debug"], 5)])
def test_debug_may_stand_behind_the_command(rigctl: Rigctl, debug: list[str], lines: int) -> None:
    errors = rigctl("plan", "nothing", *debug, code=2).errors
    assert ("Traceback" in errors) == bool(debug)
    assert len(errors.splitlines()) >= lines
    assert rigctl(*debug, "plan", "nothing", code=2).errors.count("Traceback") == len(debug)


def test_init_copies_a_rig_too(rigctl: Rigctl) -> None:
    bundled, (out, errors) = resources.scenarios() / "rigs", rigctl("init", "fast-ethernet")
    assert errors == ""
    assert "fast-ethernet-rig.yaml: a copy of the bundled rig fast-ethernet" in out
    copy = (rigctl.folder / "fast-ethernet-rig.yaml").read_text()
    assert copy == resources.modeline("rig") + (bundled / "fast-ethernet.yaml").read_text()
    rigctl("plan", "nettest-blast", "--rig", "./fast-ethernet-rig.yaml")
    # Of a name that both have, the option says which.
    assert "rigctl init --rig gigablox" in rigctl("init", "gigablox").out
    rigctl("init", "--rig", "gigablox")
    assert (rigctl.folder / "gigablox-rig.yaml").read_text().endswith((bundled / "gigablox.yaml").read_text())
    rigctl("init", "--rig", "udp", code=2)


def refused(*hosts: str, output: str = "lab.yaml", **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        write_rig_file([*hosts], output=output, **options)
    return str(caught.value)


def test_what_can_be_known_beforehand_is_refused_beforehand(tmp_path: Path) -> None:
    assert "no host is named" in refused()
    assert "runs backwards" in refused("n[2-1]")
    assert "--group chooses from an inventory" in refused("pi1", groups=["web"])
    assert "-o - and --json both print" in refused("pi1", output="-", as_json=True)
    assert "is a folder. Name a file in it" in refused("pi1", output=str(tmp_path))
    assert "is no folder that you may write to" in refused("pi1", output=str(tmp_path / "none" / "lab.yaml"))
    (tmp_path / "lab.yaml").touch()
    assert "exists" in refused("pi1", output=str(tmp_path / "lab.yaml"))
    check_place(tmp_path / "lab.yaml", force=True)


def test_hosts_of_the_command_line_come_before_those_of_the_inventory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").touch()
    groups = {"web": ["w1", "w2"], "db": ["d"]}
    read = Inventory(tmp_path / "hosts", groups, {"all": ["web", "db"]}, {"d": {"ansible_connection": "docker"}})
    monkeypatch.setattr("rigctl.cli.commands.rig.read_inventory", lambda _: read)
    for given, part, hosts, most in ((["pi1"], ":web", ["pi1", "w1", "w2"], 0), ([], "", ["w1", "w2"], 1)):
        found, notes = find_hosts(given, f"{tmp_path}/hosts{part}", [])
        assert ([target.text for target in found], len(notes)) == (hosts, most)


def test_the_published_table_comes_out(rigctl: Rigctl) -> None:
    printed = rigctl("expect", "--rate", "650M,750M,350M", "--payload", "1,1472u,1460")
    assert printed.errors == ""
    rows = [line.split() for line in printed.out.splitlines() if line.strip()[:1].isdigit()]
    assert rows[3:] == [
        ["1", "TCP", "64", "10.2", "11.7", "5.5"],
        ["1472", "UDP", "1518", "630", "727", "339"],
        ["1460", "TCP", "1518", "625", "721", "337"],
    ]


def test_the_first_table_is_that_of_a_link_with_the_rate_that_linux_reaches(rigctl: Rigctl) -> None:
    rows = [line.split() for line in rigctl("expect").out.splitlines() if line[:1].isdigit()]
    assert rows[2] == ["1448", "TCP", "with", "timestamps", "1518", "941.5"]


@from_file
def test_a_mistake_names_its_option(rigctl: Rigctl, options: list[str], said: str) -> None:
    printed = rigctl("expect", *options, code=2)
    assert printed.out == ""
    assert printed.errors.startswith(f"rigctl: {said}")
