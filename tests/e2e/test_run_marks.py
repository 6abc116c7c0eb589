"""Marks on a path with a device that rewrites or clears them: each change is found, with its pair and its counts."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from real_runs import Maker, Real, RealRun
from user import User, kept_up

from rigctl.model.latency import PROBE_BYTES

RULES = {
    ("s1", "d1"): "{there} {ip} dscp set cs0",
    ("s1", "d2"): "{there} {ip} dscp set af11",
    ("s1", "d3"): "{there} {ip} dscp ef {ip} dscp set cs1",  # one class only
    ("s1", "d4"): "{there} meta l4proto udp {ip} dscp set cs0",  # UDP only
    ("s2", "d1"): "{back} {ip} dscp set cs0",  # the other direction only
    ("s2", "d2"): "{there} meta l4proto udp numgen inc mod 4 0 {ip} dscp set cs2",  # some datagrams only
    ("s2", "d3"): "",
}
"""The path of each pair, as a rule of nftables in the switch."""
CLEARED, REWRITTEN, ONE_CLASS, UDP, ANSWERS, SOME, PLAIN = RULES
BOTH = ("EF", "AF41")
FOUND = {**dict.fromkeys(product([CLEARED], BOTH), "BE"), **dict.fromkeys(product([REWRITTEN], BOTH), "AF11")}
FOUND[ONE_CLASS, "EF"] = "CS1"
"""The mark with which packets arrive that arrive with another than the requested one, with every transport."""
FOUND_WITH_UDP = FOUND | dict.fromkeys(product([UDP], BOTH), "BE")
FOUND_OF_SOME = dict.fromkeys(product([SOME], BOTH), "CS2")
"""With UDP, too; the other datagrams arrive as they were sent."""
HEAD = "\nrig: rig.yaml\npairs: [{pairs}]\nduration: 800ms\nmax_skew: 800ms\n"
CONGESTED = """latency: 20ms
dscp: EF
congestion: cubic
conditions: {without: {sysctl: {net.ipv4.tcp_ecn: 0}}, ecn: {sysctl: {net.ipv4.tcp_ecn: 1}}}
"""
PROBE = f"meta l4proto udp udp length {PROBE_BYTES + 8}"
COUNTED = {
    "probes": f"{PROBE} ip dscp ef",
    "bare_probes": f"{PROBE} ip dscp != ef",
    "segments": "meta l4proto tcp ip length > 1000 ip dscp ef",
    "bare_segments": "meta l4proto tcp ip length > 1000 ip dscp != ef",
}
"""Packets of a path that changes nothing, as the switch counts them."""


@contextmanager
def rig(user: User, ip_version: int) -> Iterator[str]:
    """A rig with the rules of each path in the switch; yields the process that has the switch."""
    nodes = "".join(f"  {node}:\n" for node in sorted({node for ends in RULES for node in ends}))
    head = f"virtual: namespaces\nip_version: {ip_version}\nlinks: {{rate: 100M, mtu: 1500}}\nnodes:\n"
    (user.folder / "rig.yaml").write_text(head + nodes)
    with kept_up(user, "rig.yaml"):
        holder = user.holder()
        rules = [
            rule.format(
                ip="ip" if ip_version == 4 else "ip6",
                there=f"iifname {source} oifname {receiver}",
                back=f"iifname {receiver} oifname {source}",
            )
            for (source, receiver), rule in RULES.items()
        ]
        nft(holder, "table bridge marks {\nchain forward {\ntype filter hook forward priority 0\n", *rules, "}\n}")
        yield holder


def nft(holder: str, *lines: str) -> None:
    words = ["nsenter", "-t", holder, "-n", "nft", "-f", "-"]
    subprocess.run(words, input="\n".join(lines), text=True, check=True, capture_output=True)


def scenario(*paths: tuple[str, str], more: str) -> str:
    return HEAD.format(pairs=", ".join(map(" -> ".join, paths))) + more


def over_ipv6(maker: Maker) -> None:
    with rig(maker, 6):
        maker.measures("tcp", scenario(*RULES, more="matrix: {dscp: [EF, AF41], rate: 10M}\n"), "--no-report")


def over_ipv4(maker: Maker) -> None:
    with rig(maker, 4) as holder:
        rated = "test: udp\nmatrix: {dscp: [EF, AF41], rate: 1M, size: 500}\n"
        maker.measures("udp", scenario(*RULES, more=rated), "--no-report")
        answered = "test: pingpong\nmatrix: {dscp: EF, size: 100, transport: udp, iterations: 50}\n"
        maker.measures("answers", scenario(ANSWERS, more=answered), "--no-report", "--duration", "60s")
        nft(
            holder,
            "add rule bridge marks forward iifname s2 oifname d3 ip ecn != not-ect numgen inc mod 5 0 ip ecn set ce",
            *(
                f"add rule bridge marks forward {ends} {what} counter comment {name}"
                for name, what in COUNTED.items()
                for ends in ("iifname s2 oifname d3", "iifname d3 oifname s2")
            ),
        )
        maker.measures("congested", scenario(PLAIN, ANSWERS, more=CONGESTED), "--no-report")
        listed = subprocess.check_output(["nsenter", "-t", holder, "-n", "nft", "-j", "list", "ruleset"], text=True)
        (maker.folder / "nft.json").write_text(listed)


def changes(run: RealRun) -> dict[str, dict[str, Any]]:
    findings = run.document["findings"]
    return {finding["text"]: finding["numbers"] for finding in findings if finding["code"] == "value-changed"}


@pytest.mark.parametrize("test", ["tcp", "udp"])
def test_each_change_of_a_mark_is_found_and_no_other(real: Real, test: str) -> None:
    run = real(over_ipv6 if test == "tcp" else over_ipv4)[test]
    expected, partial = (FOUND_WITH_UDP, FOUND_OF_SOME) if test == "udp" else (FOUND, {})
    for row in run.rows():
        case = ((row["source"], row["destination"]), row["dscp"])
        if case in partial:
            continue
        assert (case, row["dscp_effective"]) == (case, expected.get(case, row["dscp"]))
        assert row["dscp_kept_pct"] == (0 if case in expected else 100)
    every = expected | partial
    found = {tuple(text.split()[:4:3]) for text in changes(run)}
    assert found == {(asked, effective) for (_, asked), effective in every.items()}
    for text, numbers in changes(run).items():
        named = {path for path in RULES if " → ".join(path) in text}
        wanted = {p for (p, asked), effective in every.items() if text.startswith(f"{asked} arrived as {effective} on")}
        assert named == wanted
        units = "packets of handshakes" if test == "tcp" else "datagrams"
        if named != {SOME}:
            assert f"Of {numbers['packets']:,} {units} {numbers['packets']:,} arrived as" in text


def test_a_mark_that_some_datagrams_keep_is_told_with_the_counts_of_each_mark(real: Real) -> None:
    run = real(over_ipv4)["udp"]
    row = next(row for row in run.rows() if (row["source"], row["destination"], row["dscp"]) == (*SOME, "EF"))
    assert row["dscp_effective"] == "CS2, EF"
    assert 0 < row["dscp_kept_pct"] < 100
    (text,) = (text for text in changes(run) if text.startswith("EF arrived as CS2 on s2 → d2 ("))
    assert changes(run)[text]["dscp_kept_pct"] == pytest.approx(row["dscp_kept_pct"])
    assert " arrived as CS2 and " in text


def test_answers_of_datagrams_carry_the_mark_and_are_found_without_it(real: Real) -> None:
    (text,) = changes(real(over_ipv4)["answers"])
    assert re.match(r"EF arrived as BE on d1 → s2 \((\d+) of \1\): ", text)


def test_segments_and_probes_carry_the_mark_and_marks_of_congestion_are_told_where_ecn_is_in_use(real: Real) -> None:
    run = real(over_ipv4)["congested"]
    assert changes(run) == {}
    rules = [one["rule"] for one in json.loads((run.folder / "nft.json").read_text())["nftables"] if "rule" in one]
    counted = Counter[str]()
    for rule in rules:
        if "comment" in rule:
            counted[rule["comment"]] += next(each["counter"]["packets"] for each in rule["expr"] if "counter" in each)
    # Beside the tests themselves, rigctl probes the path with a few packets of its own.
    assert counted["probes"] > 10
    assert counted["segments"] > 10
    assert (counted["bare_probes"], counted["bare_segments"]) == (0, 0)
    rows = {(row["condition"], row["destination"]): row for row in run.rows()}
    assert [rows["without", node][name] for node in ("d1", "d3") for name in ("ce_pct", "ce_echo_pct")] == [None] * 4
    assert rows["ecn", "d1"]["ce_echo_pct"] == 0
    marked = rows["ecn", "d3"]
    assert marked["ce_echo_pct"] > 0
    # Before Linux 6.18 no kernel tells what arrived marked. A mark is echoed until the sender has heard of it.
    assert marked["ce_pct"] is None or 0 < marked["ce_pct"] <= marked["ce_echo_pct"]
    assert rows["ecn", "d1"]["ce_pct"] in (None, 0)
