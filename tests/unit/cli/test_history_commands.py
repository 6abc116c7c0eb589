"""Tags, filters, `runs prune`, and runs as a file, as a user calls them."""

import json
import re
import time
from pathlib import Path

import builders
import jsonschema
import pytest
from in_process import Rigctl, live_controller

from rigctl.records import Accepted
from rigctl.store import open_store

DAY_S = 86400
DOCS = Path(__file__).parents[3] / "docs"
IPERF3 = Path(__file__).parents[1] / "fixtures/iperf3"


@pytest.fixture
def runs(rigctl: Rigctl) -> list[str]:
    """The ids of five runs in the store, one every ten days, the latest today; the earliest first."""
    made = []
    with open_store(str(rigctl.store)) as opened:
        for days in (40, 30, 20, 10, 0):
            info, measured = builders.run(builders.plan([builders.cell()])), [builders.repetition(builders.cell())]
            tags = {"firmware": f"1.{days}"}
            made.append(builders.put(opened, info, measured, time.time() - days * DAY_S, tags=tags))
    return made


def test_runs_are_tagged_found_by_their_tags_and_shown_with_them(runs: list[str], rigctl: Rigctl) -> None:
    out, _ = rigctl("tag", runs[1], "firmware=2", "baseline")
    assert out == f"{runs[1]}: baseline, firmware=2\n"
    out, _ = rigctl("tag", runs[1], "--remove", "firmware")
    assert out == f"{runs[1]}: baseline\n"
    out, _ = rigctl("runs", "--tag", "baseline", "--json")
    document = json.loads(out)
    jsonschema.validate(document, json.loads((DOCS / "schemas/runs.schema.json").read_text()))
    assert [(run["run"], run["tags"]) for run in document["runs"]] == [(runs[1], {"baseline": ""})]
    out, _ = rigctl("runs", "--tag", "firmware=1.40", "--scenario", "gigablox", "--status", "complete")
    assert runs[0] in out
    assert "firmware=1.40" in out
    assert len(out.splitlines()) == 3
    out, _ = rigctl("runs", "--tag", "firmware=9")
    assert out == "No run of 5 fits --tag firmware=9.\n"
    assert "\nfirmware=1.40\n" in rigctl("show", runs[0])[0]
    _, errors = rigctl("tag", runs[0], "rigctl.confirms=x", code=2)
    assert "are for rigctl itself" in errors
    _, errors = rigctl("tag", runs[0], "--remove", "cable", code=2)
    assert f"run {runs[0]} has no tag cable" in errors


def test_prune_says_what_it_would_remove_and_removes_only_that(runs: list[str], rigctl: Rigctl) -> None:
    with open_store(str(rigctl.store)) as opened:
        opened.history.tag(runs[0], {"baseline": ""})
        opened.history.accept(Accepted(runs[2], 1.0, "anna@lab", "new cable"))
    out, _ = rigctl("runs", "prune", "--keep", "15d")
    assert out.startswith("Would remove 1 run from ")
    assert "To remove: rigctl runs prune --keep 15d --yes\n" in out
    assert f"Kept although older: {runs[0]} (baseline), {runs[2]} (accepted)\n" in out
    with open_store(str(rigctl.store)) as opened:
        assert opened.run_ids() == runs
    out, _ = rigctl("runs", "prune", "--keep", "15d", "--yes")
    assert out.startswith("Removing 1 run from ")
    with open_store(str(rigctl.store)) as opened:
        assert opened.run_ids() == [run for run in runs if run != runs[1]]
    out, _ = rigctl("runs", "prune", "--keep", "15d", "--yes")
    assert out.startswith("No run older than 15d can be removed.\n")


def test_runs_go_from_one_store_to_another_as_a_file(runs: list[str], rigctl: Rigctl) -> None:
    file, other = rigctl.folder / "two.rigctl", rigctl.folder / "other" / "r.db"
    rigctl("export", *runs[:2], "--format", "rigctl", "-o", str(file))
    assert rigctl("import", str(file), store=other)[0] == "".join(f"{run}: imported\n" for run in runs[:2])
    assert rigctl("import", str(file), store=other)[0] == "".join(f"{run}: was there already\n" for run in runs[:2])
    assert rigctl("show", runs[0], "--json", store=other) == rigctl("show", runs[0], "--json")
    file.write_bytes(file.read_bytes()[:-20])
    _, errors = rigctl("import", str(file), store=other, code=2)
    assert errors.startswith(f"rigctl: {file}: is damaged or cut off")
    assert errors.endswith("Nothing was imported\n")
    with open_store(str(rigctl.store)) as opened:
        opened.resume(runs[4], live_controller())
        _, errors = rigctl("export", "-f", "rigctl", "-o", str(file), code=2)
    assert "is still running" in errors
    _, errors = rigctl("export", *runs[:2], "-f", "junit", code=2)
    assert "junit has one run, not 2" in errors


def test_results_of_iperf3_become_a_run_for_all_commands(rigctl: Rigctl) -> None:
    names = ("--node", "10.9.9.1=a", "--node", "10.9.9.2=b")
    ids = []
    for version in ("3.9", "3.12"):
        files = [str(IPERF3 / version / f"{name}.client.json") for name in ("tcp", "reverse")]
        out, _ = rigctl("import", "--format", "iperf3", *files, *names)
        ids.append(out.removesuffix(": imported\n"))
    out, _ = rigctl("show", ids[1])
    assert "rigctl did not measure them" in out
    out, _ = rigctl("compare", *ids, "--format", "json")
    assert len(json.loads(out)["tests"]) == 2
    out, _ = rigctl("export", ids[1], "--format", "json")
    assert {(row["source"], row["destination"], row["ceiling_mbps"]) for row in json.loads(out)} == {("a", "b", None)}
    rigctl("report", ids[0], "-o", str(rigctl.folder / "p.html"))
    assert "imported from iperf3" in (rigctl.folder / "p.html").read_text("utf-8")


def test_a_damaged_file_of_iperf3_stores_nothing_of_all(rigctl: Rigctl) -> None:
    good, damaged = IPERF3 / "3.12/tcp.client.json", rigctl.folder / "d.json"
    damaged.write_bytes(good.read_bytes()[:700])
    _, errors = rigctl("import", "--format", "iperf3", str(good), str(damaged), code=2)
    assert re.match(rf"rigctl: {re.escape(str(damaged))}:[0-9]+:[0-9]+: is no JSON", errors)
    assert not rigctl.store.exists()
    for wrong in ("a", "10.9.9.1=", "10.9.9.1=a b"):
        rigctl("import", "--format", "iperf3", str(good), "--node", wrong, code=2)
    rigctl("import", str(good), "--node", "10.9.9.1=a", code=2)
    assert not rigctl.store.exists()
