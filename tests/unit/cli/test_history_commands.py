import json
import re
import time
from pathlib import Path

import builders
import pytest
from in_process import Rigctl, live_controller

from rigctl.records import Accepted
from rigctl.store import open_store

IPERF3 = Path(__file__).parents[1] / "fixtures/iperf3"


@pytest.fixture
def runs(rigctl: Rigctl) -> list[str]:
    """The ids of five runs in the store, one every ten days, the latest today; the earliest first."""
    info, measured = builders.run(builders.plan([builders.cell()])), [builders.repetition(builders.cell())]
    ages = {days: time.time() - days * 86400 for days in (40, 30, 20, 10, 0)}
    with open_store(str(rigctl.store)) as opened:
        return [builders.put(opened, info, measured, at, tags={"firmware": f"1.{days}"}) for days, at in ages.items()]


def test_runs_are_tagged_found_by_their_tags_and_shown_with_them(runs: list[str], rigctl: Rigctl) -> None:
    assert rigctl("tag", runs[1], "firmware=2", "baseline").out == f"{runs[1]}: baseline, firmware=2\n"
    assert rigctl("tag", runs[1], "--remove", "firmware").out == f"{runs[1]}: baseline\n"
    found = rigctl.document("runs", "runs", "--tag", "baseline")["runs"]
    assert [(run["run"], run["tags"]) for run in found] == [(runs[1], {"baseline": ""})]
    _, line = rigctl(
        "runs", "--tag", "firmware=1.40", "--scenario", "gigablox", "--status", "complete"
    ).out.splitlines()
    assert {runs[0], "firmware=1.40"} <= set(line.split())
    assert rigctl("runs", "--tag", "firmware=9").out == "No run of 5 fits --tag firmware=9.\n"
    assert "\nfirmware=1.40\n" in rigctl("show", runs[0]).out
    assert "are for rigctl itself" in rigctl("tag", runs[0], "rigctl.confirms=x", code=2).errors
    assert f"run {runs[0]} has no tag cable" in rigctl("tag", runs[0], "--remove", "cable", code=2).errors


def test_prune_says_what_it_would_remove_and_removes_only_that(runs: list[str], rigctl: Rigctl) -> None:
    with open_store(str(rigctl.store)) as opened:
        opened.history.tag(runs[0], {"baseline": ""})
        opened.history.accept(Accepted(runs[2], 1.0, "anna@lab", "new cable"))
    prune = ("runs", "prune", "--keep", "15d")
    out = rigctl(*prune).out
    assert out.startswith("Would remove 1 run from ")
    assert "To remove: rigctl runs prune --keep 15d --yes\n" in out
    assert f"Kept although older: {runs[0]} (baseline), {runs[2]} (accepted)\n" in out
    with open_store(str(rigctl.store)) as opened:
        assert opened.run_ids() == runs
        assert rigctl(*prune, "--yes").out.startswith("Removing 1 run from ")
        assert opened.run_ids() == [run for run in runs if run != runs[1]]
    assert rigctl(*prune, "--yes").out.startswith("No run older than 15d can be removed.\n")


def test_runs_go_from_one_store_to_another_as_a_file(runs: list[str], rigctl: Rigctl) -> None:
    file, other = rigctl.folder / "two.rigctl", rigctl.folder / "other" / "r.db"
    rigctl("export", *runs[:2], "--format", "rigctl", "-o", str(file))
    for said in ("imported", "was there already"):
        assert rigctl("import", str(file), store=other).out == f"{runs[0]}: {said}\n{runs[1]}: {said}\n"
    assert rigctl("show", runs[0], "--json", store=other) == rigctl("show", runs[0], "--json")
    errors = rigctl("import", "none.rigctl", store=other, code=2).errors
    assert errors == "rigctl: none.rigctl: cannot be read: No such file or directory. Nothing was imported\n"
    errors = rigctl("import", "none.rigctl", str(file), store=other, code=2).errors
    assert errors == (
        "left out: none.rigctl: cannot be read: No such file or directory\nrigctl: import: 1 of 3 were left out\n"
    )
    with open_store(str(rigctl.store)) as opened:
        opened.resume(runs[4], live_controller())
        assert "is still running" in rigctl("export", "-f", "rigctl", "-o", str(file), code=2).errors
    assert "junit takes one run, not 2" in rigctl("export", *runs[:2], "-f", "junit", code=2).errors


def test_results_of_iperf3_become_a_run_for_all_commands(rigctl: Rigctl) -> None:
    names = ("--node", "10.9.9.1=a", "--node", "10.9.9.2=b")
    ids = []
    for version in ("3.9", "3.12"):
        files = [str(IPERF3 / version / f"{name}.client.json") for name in ("tcp", "reverse")]
        ids.append(rigctl("import", "--format", "iperf3", *files, *names).out.removesuffix(": imported\n"))
    oldest = ("3.9", "3.12")[ids.index(min(ids))]
    again = rigctl("import", "--format", "iperf3", str(IPERF3 / oldest / "tcp.client.json"), *names)
    assert f"`rigctl show {again.out[:20]}" in again.errors  # for `show` shows the latest
    assert "rigctl did not measure them" in rigctl("show", ids[1]).out
    assert len(json.loads(rigctl("compare", *ids, "--format", "json").out)["tests"]) == 2
    rows = json.loads(rigctl("export", ids[1], "--format", "json").out)
    assert {(row["source"], row["destination"], row["ceiling_mbps"]) for row in rows} == {("a", "b", None)}
    rigctl("report", ids[0], "-o", str(rigctl.folder / "p.html"))
    assert "imported from iperf3" in (rigctl.folder / "p.html").read_text("utf-8")


def test_a_damaged_file_of_iperf3_stores_nothing_of_all(rigctl: Rigctl) -> None:
    good, damaged = IPERF3 / "3.12/tcp.client.json", rigctl.folder / "d.json"
    damaged.write_bytes(good.read_bytes()[:700])
    errors = rigctl("import", "--format", "iperf3", str(good), str(damaged), code=2).errors
    assert re.match(rf"rigctl: {re.escape(str(damaged))}:[0-9]+:[0-9]+: is no JSON", errors)
    for wrong in ("a", "10.9.9.1=", "10.9.9.1=a b"):
        rigctl("import", "--format", "iperf3", str(good), "--node", wrong, code=2)
    rigctl("import", str(good), "--node", "10.9.9.1=a", code=2)
    assert not rigctl.store.exists()


def test_every_command_on_the_store_prints_json(runs: list[str], rigctl: Rigctl) -> None:
    assert [run["run"] for run in rigctl.document("runs", "runs")["runs"]] == runs
    assert rigctl.document("regress", "regress")["run"] == runs[-1]
    assert rigctl.document("tag", "tag", "latest~1") == {"version": 1, "run": runs[3], "tags": {"firmware": "1.10"}}
    rigctl("tag", runs[0], "baseline")
    pruned = rigctl.document("prune", "runs", "prune", "--keep", "1h")
    assert ([one["run"] for one in pruned["runs"]], pruned["removed"]) == (runs[1:4], False)
    assert pruned["kept"] == [{"run": runs[0], "why": "baseline"}]
    assert pruned["runs"][0]["bytes"] > 0


def test_what_is_calculated_or_comes_with_rigctl_is_printed_as_json(rigctl: Rigctl) -> None:
    options = ("--rate", "1G,10G", "--payload", "1448", "--timestamps", "--window", "64K", "--rtt", "1ms,2ms")
    made = rigctl.document("expect", "expect", *options)
    assert [(one["rate_mbps"], one["link_mbps"]) for one in made["rates"]] == [(1000, 941.482), (10000, 9414.824)]
    assert [one["goodput_mbps"] for one in made["windows"]] == [524.288, 262.144]
    assert rigctl.document("plan", "plan", "udp")["tests"][0]["kind"] == "udp"
    listed = rigctl.document("init-list", "init", "--list")
    assert all(Path(one["file"]).is_file() for one in [*listed["scenarios"], *listed["rigs"]])
    assert {one["name"] for one in listed["scenarios"]} > {"gigablox", "das2"}
    rigctl("init", "gigablox", "--json", code=2)
    assert all(len(one["sha256"]) == 64 for one in rigctl.document("agents", "agent", "list")["agents"])
    assert rigctl.document("rig-status", "rig", "status", "gigablox") == {"version": 1, "rig": "gigablox", "up": []}


@pytest.mark.parametrize(
    "words", ["export -f junit", "tag", "regress --format json", "accept --because cable", "runs rm --yes"]
)
def test_every_command_that_takes_a_run_knows_latest(runs: list[str], rigctl: Rigctl, words: str) -> None:
    out = rigctl(*words.split(), "latest~1").out
    assert runs[3] in out
    assert runs[4] not in out
