"""Tags, filters, `runs prune`, and runs as a file, as a user calls them."""

import json
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import builders
import jsonschema
import pytest

from rigctl.base.processes import process
from rigctl.cli.app import exit_code
from rigctl.records import Accepted
from rigctl.store import open_store

Rigctl: TypeAlias = Callable[..., tuple[str, str]]
Nights: TypeAlias = tuple[Path, list[str]]
DAY_S = 86400


@pytest.fixture
def rigctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rigctl:
    """The command line, without the half second that a process takes to begin; what it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str, store: Path, code: int = 0) -> tuple[str, str]:
        monkeypatch.setenv("RIGCTL_STORE", str(store))
        ended = exit_code(list(words))
        out, errors = capsys.readouterr()
        assert ended == code, errors
        return out, errors

    return call


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    """A store with a run every ten days, the latest today; and their ids, the earliest first."""
    path, runs = tmp_path / "r.db", []
    with open_store(str(path)) as opened:
        for days in (40, 30, 20, 10, 0):
            info, measured = builders.run(builders.plan([builders.cell()])), [builders.repetition(builders.cell())]
            tags = {"firmware": f"1.{days}"}
            runs.append(builders.put(opened, info, measured, time.time() - days * DAY_S, tags=tags))
    return path, runs


def test_runs_are_tagged_found_by_their_tags_and_shown_with_them(nights: Nights, rigctl: Rigctl) -> None:
    store, runs = nights
    out, _ = rigctl("tag", runs[1], "firmware=2", "baseline", store=store)
    assert out == f"{runs[1]}: baseline, firmware=2\n"
    out, _ = rigctl("tag", runs[1], "--remove", "firmware", store=store)
    assert out == f"{runs[1]}: baseline\n"
    out, _ = rigctl("runs", "--tag", "baseline", "--json", store=store)
    document = json.loads(out)
    jsonschema.validate(document, json.loads((Path(__file__).parents[2] / "docs/schemas/runs.schema.json").read_text()))
    assert [(run["run"], run["tags"]) for run in document["runs"]] == [(runs[1], {"baseline": ""})]
    out, _ = rigctl("runs", "--tag", "firmware=1.40", "--scenario", "gigablox", "--status", "complete", store=store)
    assert runs[0] in out
    assert "firmware=1.40" in out
    assert len(out.splitlines()) == 3
    out, _ = rigctl("runs", "--tag", "firmware=9", store=store)
    assert out == "No run of 5 fits --tag firmware=9.\n"
    assert "\nfirmware=1.40\n" in rigctl("show", runs[0], store=store)[0]
    _, errors = rigctl("tag", runs[0], "rigctl.confirms=x", store=store, code=2)
    assert "are for rigctl itself" in errors
    _, errors = rigctl("tag", runs[0], "--remove", "cable", store=store, code=2)
    assert f"run {runs[0]} has no tag cable" in errors


def test_prune_says_what_it_would_remove_and_removes_only_that(nights: Nights, rigctl: Rigctl) -> None:
    store, runs = nights
    with open_store(str(store)) as opened:
        opened.history.tag(runs[0], {"baseline": ""})
        opened.history.accept(Accepted(runs[2], 1.0, "anna@lab", "new cable"))
    out, _ = rigctl("runs", "prune", "--keep", "15d", store=store)
    assert out.startswith("Would remove 1 run from ")
    assert "To remove: rigctl runs prune --keep 15d --yes\n" in out
    assert f"Kept although older: {runs[0]} (baseline), {runs[2]} (accepted)\n" in out
    with open_store(str(store)) as opened:
        assert opened.run_ids() == runs
    out, _ = rigctl("runs", "prune", "--keep", "15d", "--yes", store=store)
    assert out.startswith("Removing 1 run from ")
    with open_store(str(store)) as opened:
        assert opened.run_ids() == [run for run in runs if run != runs[1]]
    out, _ = rigctl("runs", "prune", "--keep", "15d", "--yes", store=store)
    assert out.startswith("No run older than 15d can be removed.\n")


def test_runs_go_from_one_store_to_another_as_a_file(nights: Nights, rigctl: Rigctl, tmp_path: Path) -> None:
    store, runs = nights
    file, other = tmp_path / "two.rigctl", tmp_path / "other" / "r.db"
    rigctl("export", *runs[:2], "--format", "rigctl", "-o", str(file), store=store)
    assert rigctl("import", str(file), store=other)[0] == "".join(f"{run}: imported\n" for run in runs[:2])
    assert rigctl("import", str(file), store=other)[0] == "".join(f"{run}: was there already\n" for run in runs[:2])
    assert rigctl("show", runs[0], "--json", store=other) == rigctl("show", runs[0], "--json", store=store)
    file.write_bytes(file.read_bytes()[:-20])
    _, errors = rigctl("import", str(file), store=other, code=2)
    assert errors.startswith(f"rigctl: {file}: is damaged or cut off")
    assert errors.endswith("Nothing was imported\n")
    with open_store(str(store)) as opened:
        alive = process(os.getppid())  # this process itself does not count as one that measures
        assert alive is not None
        opened.resume(runs[4], f"{socket.gethostname()} {alive.pid} {alive.started}")
        _, errors = rigctl("export", "-f", "rigctl", "-o", str(file), store=store, code=2)
    assert "is still running" in errors
    _, errors = rigctl("export", *runs[:2], "-f", "junit", store=store, code=2)
    assert "junit has one run, not 2" in errors


IPERF3 = Path(__file__).parents[1] / "unit/fixtures/iperf3"


def test_results_of_iperf3_become_a_run_for_all_commands(rigctl: Rigctl, tmp_path: Path) -> None:
    store = tmp_path / "r.db"
    names = ("--node", "10.9.9.1=a", "--node", "10.9.9.2=b")
    ids = []
    for version in ("3.9", "3.12"):
        files = [str(IPERF3 / version / f"{name}.client.json") for name in ("tcp", "reverse")]
        out, _ = rigctl("import", "--format", "iperf3", *files, *names, store=store)
        ids.append(out.removesuffix(": imported\n"))
    out, _ = rigctl("show", ids[1], store=store)
    assert "rigctl did not measure them" in out
    out, _ = rigctl("compare", *ids, "--format", "json", store=store)
    assert len(json.loads(out)["tests"]) == 2
    out, _ = rigctl("export", ids[1], "--format", "json", store=store)
    assert {(row["source"], row["destination"], row["ceiling_mbps"]) for row in json.loads(out)} == {("a", "b", None)}
    rigctl("report", ids[0], "-o", str(tmp_path / "p.html"), store=store)
    assert "imported from iperf3" in (tmp_path / "p.html").read_text("utf-8")


def test_a_damaged_file_of_iperf3_stores_nothing_of_all(rigctl: Rigctl, tmp_path: Path) -> None:
    good, damaged = IPERF3 / "3.12/tcp.client.json", tmp_path / "d.json"
    damaged.write_bytes(good.read_bytes()[:700])
    store = tmp_path / "r.db"
    _, errors = rigctl("import", "--format", "iperf3", str(good), str(damaged), store=store, code=2)
    assert re.match(rf"rigctl: {re.escape(str(damaged))}:[0-9]+:[0-9]+: is no JSON", errors)
    assert not store.exists()
    for wrong in ("a", "10.9.9.1=", "10.9.9.1=a b"):
        rigctl("import", "--format", "iperf3", str(good), "--node", wrong, store=store, code=2)
    rigctl("import", str(good), "--node", "10.9.9.1=a", store=store, code=2)
    assert not store.exists()
