"""Marks on a path with a device that rewrites or clears them: each change is found, with its pair and its counts."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from user import User, kept_up

from rigctl.model.latency import PROBE_BYTES

RULES = {
    "cleared": "iifname c1 {ip} dscp set cs0",
    "rewritten": "iifname w1 {ip} dscp set af11",
    "class": "iifname k1 {ip} dscp ef {ip} dscp set cs1",  # one class only
    "protocol": "iifname p1 meta l4proto udp {ip} dscp set cs0",  # UDP only
    "answers": "iifname r2 {ip} dscp set cs0",  # the other direction only
    "plain": "",
}
"""The path of each pair, as a rule of nftables in the switch."""
PAIRS = {"cleared": "c", "rewritten": "w", "class": "k", "protocol": "p", "answers": "r", "plain": "n"}
FOUND = {
    ("cleared", "EF"): "BE",
    ("cleared", "AF41"): "BE",
    ("rewritten", "EF"): "AF11",
    ("rewritten", "AF41"): "AF11",
    ("class", "EF"): "CS1",
}
"""The mark with which packets arrive that arrive with another than the requested one, with every transport."""
UDP_ONLY = {("protocol", "EF"): "BE", ("protocol", "AF41"): "BE"}
SCENARIO = (
    "rig: ./rig.yaml\ntest: {test}\npairs: [{pairs}]\nduration: 800ms\nmax_skew: 1s\n"
    "matrix: {{dscp: [EF, AF41]{more}}}\n"
)


@contextmanager
def rig(user: User, ip_version: int, *paths: str) -> Iterator[str]:
    """A rig of two nodes for each path, with its rules in the switch; yields the process that has the switch."""
    nodes = "".join(f"  {PAIRS[path]}{number}:\n" for path in paths or PAIRS for number in (1, 2))
    head = f"virtual: namespaces\nip_version: {ip_version}\nlinks: {{rate: 100M, mtu: 1500}}\nnodes:\n"
    (user.folder / "rig.yaml").write_text(head + nodes)
    with kept_up(user, "rig.yaml"):
        holder = user.holder()
        rules = [rule.format(ip="ip" if ip_version == 4 else "ip6") for rule in RULES.values()]
        nft(holder, "table bridge marks {\nchain forward {\ntype filter hook forward priority 0\n", *rules, "}\n}")
        yield holder


def nft(holder: str, *lines: str) -> str:
    words = ["nsenter", "-t", holder, "-n", "nft", "-f", "-"]
    return subprocess.run(words, input="\n".join(lines), text=True, check=True, capture_output=True).stdout


def measure(user: User, test: str, paths: list[str], more: str = "", *options: str) -> dict[str, dict[str, object]]:
    """Run a test on some paths; return the findings by their sentences."""
    pairs = ", ".join(f"{PAIRS[path]}1 -> {PAIRS[path]}2" for path in paths)
    scenario = user.scenario(SCENARIO.format(test=test, pairs=pairs, more=more))
    user.rigctl("run", scenario, "--no-report", *options)
    findings = json.loads(user.rigctl("show", "--json"))["findings"]
    return {finding["text"]: finding["numbers"] for finding in findings if " arrived as " in finding["text"]}


@pytest.mark.parametrize("ip_version", [4, 6])
def test_each_change_of_a_mark_is_found_and_no_other(user: User, ip_version: int) -> None:
    with rig(user, ip_version):
        for test, more in (("tcp", ""), ("udp", ", rate: 1M, size: 500")):
            findings = measure(user, test, list(RULES), more)
            expected = FOUND | (UDP_ONLY if test == "udp" else {})
            for row in user.rows():
                path = next(path for path, letter in PAIRS.items() if row["source"] == f"{letter}1")
                case = (path, row["dscp"])
                effective = expected.get(case, row["dscp"])
                assert (case, row["dscp_effective"]) == (case, effective)
                assert row["dscp_kept_pct"] == (0 if case in expected else 100)
            changes = {(asked, effective) for (_, asked), effective in expected.items()}
            assert {tuple(text.split()[:4:3]) for text in findings} == changes
            for text, numbers in findings.items():
                units = "packets of handshakes" if test == "tcp" else "datagrams"
                assert f"Of {numbers['packets']:,} {units} {numbers['packets']:,} arrived as" in text
                named = {path for path, letter in PAIRS.items() if f"{letter}1 → {letter}2" in text}
                wanted = {p for (p, asked), e in expected.items() if text.startswith(f"{asked} arrived as {e} on")}
                assert named == wanted


def test_a_mark_that_some_datagrams_keep_is_told_with_the_counts_of_each_mark(user: User) -> None:
    with rig(user, 4, "plain") as holder:
        nft(holder, "add rule bridge marks forward iifname n1 meta l4proto udp numgen inc mod 4 0 ip dscp set cs1")
        ((text, numbers),) = measure(user, "udp", ["plain"], ", rate: 1M, size: 500", "--set", "dscp=EF").items()
        (row,) = user.rows()
        assert row["dscp_effective"] == "CS1, EF"
        assert 0 < row["dscp_kept_pct"] < 100
        assert numbers["dscp_kept_pct"] == pytest.approx(row["dscp_kept_pct"])
        assert text.startswith("EF arrived as CS1 on n1 → n2 (")
        assert " arrived as CS1 and " in text


def test_answers_of_datagrams_and_probes_beside_streams_carry_the_mark(user: User) -> None:
    with rig(user, 4, "plain", "answers") as holder:
        # The path of the answers clears the mark: what one node sends back arrives without.
        (text,) = measure(
            user, "pingpong", ["answers"], ", size: 100, transport: udp, iterations: 50", "--set", "dscp=EF"
        )
        assert text.startswith("EF arrived as BE on r2 → r1 (50 of 50): ")
        # Beside the test itself, rigctl probes the path with a few packets of its own.
        probe = f"meta l4proto udp udp length {PROBE_BYTES + 8}"
        counters = [
            f"add rule bridge marks forward iifname {{n1, n2}} {what} counter comment {name}"
            for name, what in {
                "probes": f"{probe} ip dscp ef",
                "bare_probes": f"{probe} ip dscp != ef",
                "segments": "meta l4proto tcp ip length > 1000 ip dscp ef",
                "bare_segments": "meta l4proto tcp ip length > 1000 ip dscp != ef",
            }.items()
        ]
        nft(holder, *counters)
        assert measure(user, "tcp", ["plain"], ", latency: 20ms", "--set", "dscp=EF") == {}
        listed = json.loads(subprocess.check_output(["nsenter", "-t", holder, "-n", "nft", "-j", "list", "ruleset"]))
        rules = [one["rule"] for one in listed["nftables"] if "rule" in one]
        counted = {
            rule["comment"]: next(each["counter"]["packets"] for each in rule["expr"] if "counter" in each)
            for rule in rules
            if "comment" in rule
        }
        assert counted["probes"] > 10
        assert counted["segments"] > 10
        assert (counted["bare_probes"], counted["bare_segments"]) == (0, 0)


def test_marks_of_congestion_are_told_where_ecn_is_in_use(user: User) -> None:
    conditions = "conditions: {without: {sysctl: {net.ipv4.tcp_ecn: 0}}, ecn: {sysctl: {net.ipv4.tcp_ecn: 1}}}\n"
    scenario = user.scenario(
        "rig: ./rig.yaml\npairs: [n1 -> n2, r1 -> r2]\nduration: 1s\nmax_skew: 1s\n"
        f"matrix: {{congestion: cubic}}\n{conditions}"
    )
    with rig(user, 4, "plain", "answers") as holder:
        nft(holder, "add rule bridge marks forward iifname n1 ip ecn != not-ect numgen inc mod 20 0 ip ecn set ce")
        user.rigctl("run", scenario, "--no-report")
    rows = {(row["condition"], row["source"]): row for row in user.rows()}
    assert [rows["without", node][name] for node in ("n1", "r1") for name in ("ce_pct", "ce_echo_pct")] == [None] * 4
    assert rows["ecn", "r1"]["ce_echo_pct"] == 0
    marked = rows["ecn", "n1"]
    assert marked["ce_echo_pct"] > 0
    # Before Linux 6.18 no kernel tells what arrived marked. A mark is echoed until the sender has heard of it.
    assert marked["ce_pct"] is None or 0 < marked["ce_pct"] <= marked["ce_echo_pct"]
    assert rows["ecn", "r1"]["ce_pct"] in (None, 0)
