"""Placement from the command line: requested, effective, and refused with the node's name."""

import os

import pytest
from user import User

RIG = "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes: {near: , far: }\n"
CPUS = sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two processors")
def test_flows_run_where_they_were_asked_to_run(user: User) -> None:
    (user.folder / "rig.yaml").write_text(RIG)
    first, last = CPUS[0], CPUS[-1]
    user.rigctl(
        "run",
        user.scenario(
            "rig: ./rig.yaml\npairs: [near -> far]\nduration: 1s\nmax_skew: 1s\n"
            f"matrix: {{parallel: 2, placement: [{{sender: {first}, receiver: [{last}]}}, nic, scheduler]}}\n"
        ),
        code=3,
    )
    placed, refused, free = user.rows("cells")
    assert (placed["placement"], placed["status"]) == (f"{first}/{last}", "ok")
    assert (placed["processors_sender"], placed["processors_receiver"]) == (f"{first}: 100 %", f"{last}: 100 %")
    assert refused["status"] == "failed"
    assert refused["reason"].startswith("far: listen: placement: nic: this system does not tell the NUMA node of eth0")
    assert (free["placement"], free["status"]) == (None, "ok")
    assert "%" in free["processors_sender"]
    shown = user.rigctl("show", "--all")
    assert f"Two flows share processor {first} of near: test 1." in " ".join(shown.split())
