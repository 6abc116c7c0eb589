"""The scenario of the GigaBlox page on four machines with the processor of a Raspberry Pi 4."""

import pytest
from machine_lab import Lab

pytestmark = [pytest.mark.machines, pytest.mark.timeout(900)]
EMULATED = "emulated: the figures are emulation's"


def test_gigablox_runs_by_the_pushed_agent_and_its_figures_are_called_emulations(pis: Lab) -> None:
    said = pis.good("gigablox", "--rig", str(pis.file), "--duration", "3s", "--set", "max_skew=10s")
    assert EMULATED in " ".join(said.split())
    pis.user.rigctl("report", "-o", "page.html", deadline_s=200)
    assert EMULATED in (pis.user.folder / "page.html").read_text()
    rows = pis.user.rows("cells")
    assert sorted({row["cell"] for row in rows}) == list(range(1, 8))
    assert all(row["goodput_mbps"] > 0 for row in rows)
    facts = pis.facts()
    assert {known["kernel"].split()[-1] for known in facts.values()} == {"aarch64"}
    assert {known["cpu_model"] for known in facts.values()} == {"Cortex-A72"}
    assert all(known["emulated"] for known in facts.values())
    for row in rows:
        print(f"test {row['cell']}: {row['goodput_mbps']:.0f} Mbit/s by emulation, skew {row['start_skew_us']} us")
    assert set(pis.each("ls /root/.cache/rigctl/*/agent-* | wc -l").values()) == {"1\n"}
