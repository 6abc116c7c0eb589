"""Meshes on a virtual rig of four nodes, one of them behind a slower link: goodput, and round trips."""

import json
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from user import User, kept_up

RIG = 'virtual: namespaces\nnodes: {"n[1..3]": {rate: 300M}, n4: {rate: 100M}}\n'
MESH = "rig: ./rig.yaml\npairs: mesh\nduration: 800ms\nmax_skew: 1s\n"  # other tests run beside this one
NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    made = User(tmp_path_factory.mktemp("host"))
    (made.folder / "rig.yaml").write_text(RIG)
    with kept_up(made, "rig.yaml"):
        yield made


@pytest.fixture
def guest(tmp_path: Path, host: User) -> User:
    made = User(tmp_path, host)
    (tmp_path / "rig.yaml").write_text(RIG)
    return made


def test_a_mesh_measures_every_ordered_pair_and_names_the_slow_node_once(guest: User) -> None:
    scenario = guest.scenario(MESH)
    said = guest.rigctl("run", scenario)
    assert "test 4/12: n2 → n1, 1 flow" in said
    assert "Client by server" in said
    measured = {(row["source"], row["destination"]): row for row in guest.rows()}
    assert set(measured) == set(permutations(NODES, 2))
    made = json.loads(guest.rigctl("show", "--json"))
    slow = [finding for finding in made["findings"][1:] if finding["subject"] == {"kind": "node", "names": ["n4"]}]
    assert [finding["numbers"]["roles"] for finding in slow] == ["sending and receiving"]
    assert "Its link in the rig file has only 100 Mbit/s." in slow[0]["text"]
    table = made["results"][0]["blocks"][0]
    assert [row["texts"][0] for row in table["rows"]] == list(NODES)
    for number, row in enumerate(table["rows"]):
        assert row["texts"][1 + 2 * number : 3 + 2 * number] == ["·", "·"]
    assert abs(table["rows"][1]["values"][1] - measured["n2", "n1"]["goodput_mbps"]) < 0.001


def test_a_parallel_mesh_measures_the_same_pairs_in_six_rounds_and_can_be_resumed(guest: User) -> None:
    scenario = guest.scenario(MESH)
    said = guest.rigctl("run", scenario, "--set", "pairs=mesh-parallel", "--no-report")
    assert "test 1/6: n1 → n4, n2 → n3, 1 flow" in said
    rows = guest.rows()
    assert {(row["source"], row["destination"]) for row in rows} == set(permutations(NODES, 2))
    assert {row["cell"] for row in rows} == set(range(1, 7))
    said = guest.rigctl("run", scenario, "--set", "pairs=mesh-parallel", "--no-report", "--resume", rows[0]["run"])
    assert "test 1/6" not in said
    assert "Client by server" in said


def test_a_mesh_of_ping_pongs_has_round_trips_in_its_table(guest: User) -> None:
    scenario = guest.scenario(
        "rig: ./rig.yaml\npairs: {mesh: [n1, n2, n3]}\ntest: pingpong\nmatrix: {size: 64, iterations: 50}\n"
    )
    assert "the median round trip is shortest at" in guest.rigctl("run", scenario, "--no-report").replace("\n", " ")
    table = json.loads(guest.rigctl("show", "--json"))["results"][0]["blocks"][0]
    measured = {(row["source"], row["destination"]): row["app_rtt_p50_us"] for row in guest.rows("flows")}
    assert len(measured) == 6
    assert abs(table["rows"][0]["values"][3] - measured["n1", "n2"]) < 0.1
