"""Counters of real switches beside real flows: they agree without losses, and losses are found where they are."""

import re
import subprocess

from user import User, kept_up

RIG = """\
switches:
  left: {title: Left, mtu: 9216, snmp: {version: 2c}}
  right: {title: Right, mtu: 9216, snmp: {version: 2c}}
trunk: {rate: 1G}
virtual: namespaces
links: {rate: 300M, mtu: 1500}
nodes:
  a: {switch: left}
  b: {switch: right}
"""
SCENARIO = "rig: ./rig.yaml\npairs: [a -> b]\nduration: 2s\nmax_skew: 1s\nmatrix: {parallel: 2, congestion: cubic}\n"
DROPPED = "ip protocol tcp ip length > 500 numgen random mod 100 < 1 counter drop"


def test_counters_agree_with_the_flows_and_losses_in_a_switch_are_found_at_its_port(user: User) -> None:
    (user.folder / "rig.yaml").write_text(RIG)
    scenario = user.scenario(SCENARIO)
    with kept_up(user, "rig.yaml"):
        user.rigctl("run", scenario, "--no-report")
        assert re.search(r"counters show .*: a difference of (less than 0\.1|0\.[1-9]) %", user.findings())
        table = f"table bridge loss {{ chain some {{ type filter hook forward priority 0; oifname b {DROPPED}\n}}\n}}\n"
        subprocess.run(["nsenter", "-t", user.holder(), "-n", "nft", "-f", "-"], input=table, text=True, check=True)
        user.rigctl("run", scenario, "--no-report")
        assert re.search(r"Of about \d.* retransmits .* were lost at switch right, port b", user.findings())
