"""Counters of real switches beside real flows: they agree without losses, and losses are found where they are."""

import re
import subprocess

from real_runs import Maker, Real
from user import kept_up

RIG = """\
switches:
  left: {title: Left, mtu: 9216, snmp: {version: 2c}}
  right: {title: Right, mtu: 9216, snmp: {version: 2c}}
trunk: {rate: 1G}
virtual: namespaces
links: {rate: 100M, mtu: 1500}
nodes:
  a: {switch: left}
  b: {switch: right}
"""
SCENARIO = """
rig: rig.yaml
pairs: [a -> b]
duration: 1500ms
max_skew: 1500ms
matrix: {dscp: [default, AF11], parallel: 2, congestion: cubic}
"""
LOSS = "ip dscp af11 ip length > 500 numgen random mod 100 < 2 counter drop"
"""What the switch loses: nothing of the first test."""


def counted(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(RIG)
    table = f"table bridge loss {{ chain some {{ type filter hook forward priority 0; oifname b {LOSS}\n}}\n}}\n"
    with kept_up(maker, "rig.yaml"):
        subprocess.run(["nsenter", "-t", maker.holder(), "-n", "nft", "-f", "-"], input=table, text=True, check=True)
        maker.measures("counted", SCENARIO, "--no-report")


def test_counters_agree_with_the_flows_and_losses_in_a_switch_are_found_at_its_port(real: Real) -> None:
    run = real(counted)["counted"]
    assert re.search(r"counters show .*: a difference of (less than 0\.1|0\.[1-9]) %", run.findings)
    assert re.search(r"Of about \d.* retransmits .* were lost at switch right, port b", run.findings)
