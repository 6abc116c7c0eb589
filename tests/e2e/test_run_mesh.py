"""Meshes on virtual rigs: goodput, where one node is behind a slower link."""

from itertools import permutations

from real_runs import Maker, Real
from user import User, kept_up

# On a busy machine, too, the other nodes are nowhere near as slow as n3.
RIG = 'virtual: namespaces\nnodes: {"n[1..2]": {rate: 100M}, n3: {rate: 10M}}\n'
MESH = "\nrig: rig.yaml\npairs: mesh\nduration: 500ms\nmax_skew: 500ms\n"
OF_FOUR = "virtual: namespaces\nlinks: {rate: 100M}\nnodes: {n1: , n2: , n3: , n4: }\n"


def mesh(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(RIG)
    with kept_up(maker, "rig.yaml"):
        maker.measures("mesh", MESH)


def test_a_mesh_measures_every_ordered_pair_and_names_the_slow_node_once(real: Real) -> None:
    run = real(mesh)["mesh"]
    assert " 3/6  n2 → n1 " in run.said
    assert "Client by server" in run.said
    measured = {(row["source"], row["destination"]): row for row in run.rows()}
    assert set(measured) == set(permutations(("n1", "n2", "n3"), 2))
    made = run.document
    slow = [finding for finding in made["findings"][1:] if finding["subject"] == {"kind": "node", "names": ["n3"]}]
    assert [finding["numbers"]["roles"] for finding in slow] == ["sending and receiving"]
    assert "Its link in the rig file has only 10 Mbit/s." in slow[0]["text"]
    table = made["results"][0]["blocks"][0]
    assert [row["texts"][0] for row in table["rows"]] == ["n1", "n2", "n3"]
    for number, row in enumerate(table["rows"]):
        assert row["texts"][1 + 2 * number : 3 + 2 * number] == ["·", "·"]
    assert abs(table["rows"][1]["values"][1] - measured["n2", "n1"]["goodput_mbps"]) < 0.001


def test_a_parallel_mesh_measures_the_same_pairs_in_six_rounds_and_can_be_resumed(replayed: User) -> None:
    (replayed.folder / "rig.yaml").write_text(OF_FOUR)
    scenario = replayed.scenario(MESH.replace("mesh", "mesh-parallel"))
    said = replayed.rigctl("run", scenario, "--no-report")
    assert " 1/6  n1 → n4, n2 → n3 " in said
    rows = replayed.rows()
    assert {(row["source"], row["destination"]) for row in rows} == set(permutations(("n1", "n2", "n3", "n4"), 2))
    assert {row["cell"] for row in rows} == set(range(1, 7))
    said = replayed.rigctl("run", scenario, "--no-report", "--resume", rows[0]["run"])
    assert " 1/6 " not in said
    assert "Client by server" in said
