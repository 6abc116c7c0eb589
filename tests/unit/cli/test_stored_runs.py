import json
import re
import shutil
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import builders
import compared_runs
import pytest
from cases import from_file
from in_process import Rigctl, live_controller

from rigctl.records import Acceptance, RunStatus
from rigctl.store import open_store
from rigctl.store.store import short_id

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
    assert {short_id(runs[0]), "firmware=1.40"} <= set(line.split())
    assert rigctl("runs", "--tag", "firmware=9").out == "No run of 5 fits --tag firmware=9.\n"
    assert "\nfirmware=1.40\n" in rigctl("show", runs[0]).out
    assert f"run {runs[0]} has no tag cable" in rigctl("tag", runs[0], "--remove", "cable", code=2).errors


def test_prune_says_what_it_would_remove_and_removes_only_that(runs: list[str], rigctl: Rigctl) -> None:
    with open_store(str(rigctl.store)) as opened:
        opened.history.tag(runs[0], {"baseline": ""})
        opened.history.accept(Acceptance(runs[2], 1.0, "anna@lab", "new cable"))
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


TESTS = compared_runs.cells(3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A store of two equal runs and one with a slower test."""
    path = tmp_path_factory.mktemp("compared") / "store.db"
    slow = compared_runs.view(TESTS, seed=3, factors={2: 0.9})
    views = enumerate((compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2), slow))
    with open_store(str(path)) as store:
        return path, [
            builders.put(store, own.info, compared_runs.whole(own), own.info.started_at + 3600 * at)
            for at, own in views
        ]


@pytest.fixture
def compared(made: tuple[Path, list[str]], rigctl: Rigctl) -> list[str]:
    """The ids of its runs, of which the test has a copy."""
    shutil.copy(made[0], rigctl.store)
    return made[1]


def test_the_latest_is_compared_with_the_one_before_where_none_is_named(compared: list[str], rigctl: Rigctl) -> None:
    made = rigctl.document("compare", "compare", code=1)
    assert ([made[side]["run"] for side in ("before", "after")], made["worse"]) == ([compared[1], compared[2]], True)
    assert (made["tests"][0]["test"], made["tests"][0]["verdict"]) == (2, "worse")


def test_the_run_before_is_the_latest_of_the_same_scenario_and_rig(compared: list[str], rigctl: Rigctl) -> None:
    info = builders.run(builders.plan([builders.cell()], scenario_name="other"))
    with open_store(str(rigctl.store)) as store:
        other = builders.put(store, info, [builders.repetition(builders.cell())], info.started_at + 3 * 3600)
        views = compared_runs.view(TESTS)
        latest = builders.put(store, views.info, compared_runs.whole(views), info.started_at + 4 * 3600)
    made = rigctl.document("compare", "compare")
    assert [made[side]["run"] for side in ("before", "after")] == [compared[2], latest]
    errors = rigctl("compare", other, latest, code=2).errors
    assert errors == "rigctl: the runs have no test in common: other on gigablox; gigablox on gigablox\n"
    rigctl("runs", "rm", "--yes", latest)
    assert f"no run of other on gigablox before {other}. Name two runs" in rigctl("compare", code=2).errors


def test_what_cannot_be_compared_or_written_is_refused_with_the_reason(compared: list[str], rigctl: Rigctl) -> None:
    for words, what in (
        ([compared[0], compared[0]], "is both A and B"),
        (["latest~7"], "the store has 3 runs"),
        (["-o", "c.txt"], "c.txt: the ending names no format"),
    ):
        assert what in rigctl("compare", *words, code=2).errors


@pytest.mark.usefixtures("compared")
def test_a_file_gets_the_format_of_its_ending(rigctl: Rigctl) -> None:
    for name, begins in {"c.html": "<!doctype html>", "c.md": "# ", "c.json": "{"}.items():
        assert rigctl("compare", "-o", name, code=1).out == f"{rigctl.folder / name}\n"
        assert (rigctl.folder / name).read_text().lstrip().startswith(begins)


@pytest.mark.usefixtures("compared")
def test_a_wider_bound_leaves_a_slower_test_open(rigctl: Rigctl) -> None:
    made = rigctl.document("compare", "compare", "--bound", "20")
    assert (made["bound_pct"], made["tests"][0]["verdict"]) == (20, "inconclusive")


@pytest.fixture
def stored(rigctl: Rigctl) -> Rigctl:
    """The command line, on a store with a run and an earlier one that nobody ended."""
    info, measured = builders.gigablox()
    with open_store(str(rigctl.store)) as opened:
        builders.put(opened, info, measured)
        opened.begin(info.plan, info.versions, info.facts, info.started_at - 90_000)
    return rigctl


def test_report_writes_one_file_and_says_where(stored: Rigctl) -> None:
    page = stored.folder / "page.html"
    assert stored("report", "-o", "page.html").out.strip() == str(page)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    stored("report")
    assert len(list((stored.folder / "rigctl-reports").glob("gigablox-20261120-*.html"))) == 1


@from_file
def test_what_is_wrong_is_told_with_exit_code_2(stored: Rigctl, words: tuple[str, ...], said: str) -> None:
    errors = stored(*words, code=2).errors
    assert (said in errors, "Traceback" in errors) == (True, False)
    assert not (stored.folder / "none.db").exists()


def test_a_run_that_cannot_be_read_hides_no_other(stored: Rigctl) -> None:
    with open_store(str(stored.store)) as opened:
        first, second = opened.run_ids()
    with sqlite3.connect(stored.store) as other:
        other.execute("UPDATE runs SET plan = '{' WHERE run = ?", [second])
    other.close()
    out, errors = stored("runs", code=2)
    assert re.fullmatch(rf"rigctl: store {stored.store}: run {second} can't be read \(.*\n", errors)
    assert short_id(first) in out
    stored("show", first)


@pytest.mark.parametrize("words", [["show", "\udcff"], ["plan", "--rig", "5\udcff"], ["runs", "--store", "\udcff"]])
def test_an_argument_that_is_no_text_is_told(rigctl: Rigctl, words: list[str]) -> None:
    errors = rigctl(*words, code=2).errors
    assert errors.endswith('\\xff" contains bytes that are not UTF-8. Name files and values in UTF-8\n')


@pytest.mark.parametrize("given", [[], ["--store", "other.db"]])
def test_runs_before_the_first_run_is_an_empty_list(rigctl: Rigctl, given: list[str]) -> None:
    assert rigctl("runs", *given) == ("No runs yet. Start one with `rigctl run SCENARIO`.\n", "")
    assert json.loads(rigctl("runs", "--json", *given).out) == {"version": 1, "runs": [], "damaged": []}
    assert list(rigctl.folder.iterdir()) == []


def test_a_run_that_is_being_measured_is_neither_exported_nor_removed(runs: list[str], rigctl: Rigctl) -> None:
    with open_store(str(rigctl.store)) as opened:
        opened.resume(runs[4], live_controller())
    for words in ("export -f rigctl -o r.rigctl latest", f"runs rm {runs[4]} --yes"):
        assert "is still running" in rigctl(*words.split(), code=2).errors


def test_a_scenario_name_from_elsewhere_leads_nowhere_else(rigctl: Rigctl) -> None:
    info, _ = builders.gigablox()
    with open_store(str(rigctl.store)) as opened:
        run = opened.begin(replace(info.plan, scenario_name="../../outside"), {}, {}, time.time())
        opened.finish(run, RunStatus.PARTIAL, time.time())
    rigctl("report", run)
    assert [path.name for path in rigctl.folder.glob("**/*.html")] == [f"outside-{run}.html"]
    assert not (rigctl.folder / f"../../outside-{run}.html").exists()


@pytest.fixture
def earlier(rigctl: Rigctl) -> str:
    """The id of a run of a slower product; the store has a later one of a new product, which has a theme."""
    cell, runs = builders.cell(), []
    with open_store(str(rigctl.store)) as opened:
        for at, (name, mbps) in enumerate({"old": (900, 900), "new": (941, 941.3)}.items()):
            info = builders.run(builders.plan([cell], virtual=None, repeat=5, rig_name=name))
            every = [builders.repetition(cell, [rate - 0.1 * n for rate in mbps], number=n) for n in range(1, 6)]
            runs.append(builders.put(opened, info, every, info.started_at + 86_400 * at))
    (rigctl.folder / "new.yaml").write_text("name: New\nwords: {goodput: Speed}\n")
    return runs[0]


def test_a_fragment_has_everything_that_is_published(earlier: str, rigctl: Rigctl) -> None:
    out, errors = rigctl("report", "--theme", "new.yaml", "--fragment", "out")
    names = {"fragment.html", "table.svg", "table.png", "chart.svg", "chart.png", "og.png"}
    assert (errors, {path.name for path in (rigctl.folder / "out").iterdir()}) == ("", names)
    assert {Path(line).name for line in out.splitlines()} == names
    fragment = (rigctl.folder / "out" / "fragment.html").read_text()
    assert "New: 940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows." in fragment
    assert "Speed of each pair" in fragment
    errors = rigctl("report", earlier, "--fragment", "out").errors
    assert errors.startswith("No claim is made: it achieves 95.5 % of what the link allows, the theme requires")


def test_a_comparison_is_a_page_in_the_theme(earlier: str, rigctl: Rigctl) -> None:
    words = ("report", "--theme", "new.yaml", "--compare", earlier, "--fragment", "out", "-o", "page.html")
    assert rigctl(*words).errors == ""
    page = (rigctl.folder / "page.html").read_text()
    assert all(words in page for words in ("two runs compared", '<p class="brand">New</p>'))
    assert (rigctl.folder / "out" / "fragment.html").exists()


@pytest.mark.usefixtures("earlier")
def test_a_theme_with_mistakes_is_refused_before_anything_is_written(rigctl: Rigctl) -> None:
    (rigctl.folder / "bad.yaml").write_text('name: A\ncolours: {soft: "#cccccc"}\nlogo: none.svg\n')
    errors = rigctl("report", "--theme", "bad.yaml", "--fragment", "out", code=2).errors
    assert all(words in errors for words in ("bad.yaml:2:17: colours: soft #cccccc on paper", "bad.yaml:3:7: logo"))
    assert "Traceback" not in errors
    assert not (rigctl.folder / "out").exists()
