"""A machine loses its power while a condition holds: at the next contact, at the latest, all is as it was."""

import os
import random

import pytest
from machine_lab import FILES, LEFT, SETTINGS, Lab
from torture import wait_at_random

pytestmark = pytest.mark.machines
CUTS = int(os.environ.get("RIGCTL_CUTS", "20"))
SEED = int(os.environ.get("RIGCTL_SEED", "13"))
SCENARIO = """
pairs: [amd -> arm]
duration: 1s
max_skew: 10s
conditions:
  one:
    mtu: 1400
    rings: {rx: 128, tx: 128}
    qdisc: {kind: pfifo, limit: 500}
    rps: all
    sysctl: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}
    offload: {gro: off}
  two: {mtu: 1300, resize: true, rings: {rx: 128}}
matrix: {window: [32K, 64K]}
"""
TORN = (
    "cd /root/.cache/rigctl; for file in $(find . -name 'settings-*'); do "
    "truncate -s $(($(stat -c %s $file) / 2)) $file; echo torn; done; sync"
)


@pytest.mark.timeout(300 * CUTS)
def test_after_a_power_cut_settings_and_files_are_as_before_at_the_next_contact(mixed: Lab) -> None:
    mixed.contact()
    before, files = mixed.each(SETTINGS), mixed.each(FILES)
    moments = random.Random(SEED)
    name = mixed.scenario(SCENARIO)
    during, torn, back, codes = 0, 0, [], []
    for number in range(CUTS):
        victim = mixed.nodes[number % 2]
        boot = mixed.boot_id(victim)
        with mixed.running(name, victim) as process:
            wait_at_random(moments, 0, 2)
            mixed.power_cut(victim)
            back.append(mixed.back(victim, boot))
            left = mixed.ssh(victim, LEFT)
            during += "settings-" in left
            process.communicate(timeout=300)  # it may have gone on with the machine that came back
            codes.append(process.returncode)
        if number % 4 >= 2:
            torn += "torn" in mixed.ssh(victim, TORN)
        mixed.contact()
        assert mixed.each(SETTINGS) == before
        assert mixed.each(FILES) == files
        assert mixed.each(LEFT) == dict.fromkeys(mixed.nodes, "")
        print(f"cut {number + 1}: {victim}, back after {back[-1]:.0f} s, run ended with {codes[-1]}, left: {left!r}")
    print(f"seed {SEED}: {CUTS} cuts, journal found after {during}, torn {torn}; exit codes {sorted(set(codes))}")
    assert during > CUTS // 2  # else this test has shown nothing
    assert set(codes) <= {0, 3}
