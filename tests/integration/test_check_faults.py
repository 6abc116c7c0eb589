"""`check` against faults really made on a virtual rig, one at a time, each with its finding; a clean rig has none."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from processes import DEADLINE_S, mounted
from virtual_rigs import kept_up, login, output, rig

from rigctl.base.errors import RigError
from rigctl.check.gather import gathered
from rigctl.check.judge import judged
from rigctl.findings import Finding, Severity
from rigctl.records import Pair, RunPlan
from rigctl.rig.inventory import Rig
from rigctl.runner.nodes import nodes_of
from rigctl.runner.precheck import prechecked
from rigctl.scenario.load import Overrides, load_plan
from rigctl.virtual.provide import provided

UNHEALTHY = (Severity.ERROR, Severity.WARNING)
NO_RULE = "nft delete table inet fault"
A, B, C = (f"10.77.0.{number}" for number in (1, 2, 3))


@pytest.fixture(autouse=True)
def clocks_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the exchanges with the agents' clocks take is no subject of these tests."""
    monkeypatch.setattr("rigctl.check.rules.nodes.SKEW_S", DEADLINE_S)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system without execution; a rig that starts later has it."""
    with mounted(tmp_path_factory.mktemp("cache") / "noexec", "noexec") as made:
        yield made


@pytest.fixture(scope="module")
def standing(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig that is up, for faults that a command takes away again."""
    with kept_up(rig(tmp_path_factory.mktemp("rig"), "a", "b", "c", links="{rate: 1G, mtu: 9000}")) as started:
        yield started


@asynccontextmanager
async def fault(ready: Rig, node: str, command: str, undo: str = NO_RULE) -> AsyncIterator[None]:
    """A fault on a node, by a command that `undo` takes back."""
    await output(ready, node, command)
    try:
        yield
    finally:
        await output(ready, node, undo)


async def unhealthy(ready: Rig) -> list[Finding]:
    return [finding for finding in judged(await gathered(ready, None, "a test")) if finding.level in UNHEALTHY]


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [finding.text for finding in findings]
    return findings[0]


def nft(hook: str, rule: str) -> str:
    table = f"table inet fault {{ chain some {{ type filter hook {hook} priority 0; {rule}; }}; }}"
    return f"echo '{table}' | nft -f -"


async def refusal(ready: Rig, plan: RunPlan) -> str:
    """Why a run of `plan` is refused; empty: it is not."""
    names = sorted(plan.nodes)
    async with nodes_of(ready, "a test") as nodes:
        await nodes.open(names)
        try:
            return "\n".join((await prechecked(plan, nodes, names))[0])
        except RigError as error:
            return str(error)


def plan_of(ready: Rig, folder: Path, text: str) -> RunPlan:
    (folder / "s.yaml").write_text(f"rig: {ready.source}\nduration: 1s\n{text}\n")
    return load_plan(str(folder / "s.yaml"), Overrides())[0]


async def test_a_clean_rig_has_no_warning_and_says_what_is_in_order(standing: Rig) -> None:
    findings = judged(await gathered(standing, None, "a test"))
    assert [finding.text for finding in findings if finding.level in UNHEALTHY] == []
    (sizes,) = (finding for finding in findings if "path_mtu_bytes" in finding.numbers)
    assert dict(sizes.numbers) == {"path_mtu_bytes": 9000, "icmp_payload_bytes": 8972, "ethernet_frame_bytes": 9014}
    assert "all 6 paths" in sizes.text


async def test_a_black_hole_of_ipv6_is_the_only_finding_of_its_rig(standing: Rig) -> None:
    nodes = {name: replace(standing.nodes[name], data_address=f"fd77::{at}") for at, name in enumerate("ab", 1)}
    async with fault(standing, "b", nft("input", 'iifname "eth0" ip6 length > 3000 drop')):
        hole = only(await unhealthy(replace(standing, nodes=nodes, ip_version=6)))
        assert hole.text.startswith("a -> b: black hole")
        assert (hole.numbers["path_mtu_bytes"], hole.numbers["icmp_payload_bytes"]) == (3040, 2992)


WRONG = f"ip neigh replace {B} lladdr 02:00:00:00:00:99 dev eth0 nud permanent"  # as if a third host had been faster


@pytest.mark.parametrize(
    ("names", "node", "command", "undo", "text", "remedy"),
    [
        ("b", "b", "ip link set dev eth0 mtu 1500", "ip link set dev eth0 mtu 9000",
         r"b: eth0 has MTU 1500, the rig file 9000\.", "On the node, as root: ip link set dev eth0 mtu 9000"),
        ("a -> b", "a", nft("output", f"ip daddr {B} udp dport 1-65535 drop"), NO_RULE,
         r"a -> b: UDP to port .*: refused by the sender's own firewall \(EPERM\); TCP passes\.", ""),
        ("a -> b", "b", nft("input", f"ip saddr {A} ct state new drop"), NO_RULE,
         r".*TCP and UDP to port.*dropped without an answer.*", ""),
        ("a", "a", WRONG, f"ip neigh del {B} dev eth0",
         f".*a: {B} of b is answered for by 02:00:00:00:00:99, an interface of another host.*", ""),
        ("a", "a", f"ip route add prohibit {B}/32", f"ip route del prohibit {B}/32",
         ".*a route of type prohibit covers it.*", "On the node, as root: ip route del prohibit"),
    ],
    ids=["a smaller MTU", "the sender's firewall", "a silent firewall", "another host answers", "a route that forbids"],
)  # fmt: skip
async def test_a_fault_is_the_only_finding_and_told_with_its_cause(
    standing: Rig, names: str, node: str, command: str, undo: str, text: str, remedy: str
) -> None:
    async with fault(standing, node, command, undo):
        finding = only(await unhealthy(standing))
    assert re.fullmatch(text, finding.text), finding.text
    assert finding.subject.names == (names,)
    assert (finding.remedy or "").startswith(remedy)


async def test_a_path_that_answers_large_packets_is_no_black_hole(standing: Rig) -> None:
    """c routes from a to b, over a route with MTU 1400."""
    routes = (
        "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/eth0/send_redirects;"
        f"echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects; ip route add {B}/32 dev eth0 mtu 1400"
    )
    none = f"ip route del {B}/32"
    async with (
        fault(standing, "c", routes, f"echo 0 >/proc/sys/net/ipv4/ip_forward; {none}"),
        fault(standing, "a", f"ip route add {B}/32 via {C}", none),
    ):
        findings = await unhealthy(standing)
    (answered,) = (finding for finding in findings if finding.subject.names == ("a -> b",))
    assert answered.level is Severity.WARNING
    assert f"answered by {C} (ICMP, MTU 1400)" in answered.text
    assert answered.numbers["path_mtu_bytes"] == 1400
    (route,) = (finding for finding in findings if finding is not answered)
    assert route.text == "c: the route to b has MTU 1400, its interface 9000."


async def test_a_firewall_that_rejects_is_told_with_what_came_back(standing: Rig) -> None:
    rule = (
        'iifname "eth0" meta l4proto tcp reject with tcp reset; '
        'iifname "eth0" meta l4proto udp reject with icmp type admin-prohibited'
    )
    async with fault(standing, "b", nft("input", rule)):
        findings = await unhealthy(standing)
    (finding,) = (each for each in findings if "a -> b" in each.subject.names)
    assert finding.text.partition(": ")[2].startswith("TCP to port ")
    assert "rejected, a reset or ICMP port unreachable came back" in finding.text
    assert f"ICMP administratively prohibited from {B} came back" in finding.text


async def test_a_cache_without_execution_is_passed_over_and_told(standing: Rig, cache: Path) -> None:
    instead = f"mkdir -p ~/.cache && mv ~/.cache ~/kept && ln -s {cache} ~/.cache"
    async with fault(standing, "a", instead, "rm ~/.cache && mv ~/kept ~/.cache"):
        findings = judged(await gathered(standing, None, "a test"))
    (note,) = (finding for finding in findings if finding.level is Severity.NOTE)
    assert note.subject.names == ("a",)
    assert "can't be used (Permission denied)" in note.text


async def test_data_that_leave_by_another_interface_are_told_and_not_measured(standing: Rig, tmp_path: Path) -> None:
    made = "ip link add m0 type veth peer name m1 && ip link set m0 up && ip link set m1 up"
    async with fault(standing, "a", f"{made} && ip route add {B}/32 dev m0", "ip link del m0"):
        route = only(await unhealthy(standing))
        assert route.text == f"a: data to b ({B}) leave by m0, not by eth0."
        assert route.level is Severity.ERROR
        plan = plan_of(standing, tmp_path, "pairs: [a -> b]")
        (cell,) = plan.cells
        assert route.text in await refusal(standing, plan)
        back, other = (replace(plan, cells=(replace(cell, pairs=(Pair("b", to),)),)) for to in ("a", "c"))
        assert route.text in await refusal(standing, back)
        assert await refusal(standing, other) == ""


async def test_an_interface_that_is_down_is_told_and_nothing_that_follows(standing: Rig, tmp_path: Path) -> None:
    back = "ip link set dev eth0 up && ip address add fd77::2/64 dev eth0 nodad"
    async with fault(standing, "b", "ip link set dev eth0 down", back):
        assert only(await unhealthy(standing)).text == "b: eth0 is down."
        said = await refusal(standing, plan_of(standing, tmp_path, "pairs: [a -> b]"))
    assert "b: eth0 is down." in said
    assert "nft" not in said


async def test_an_address_that_two_nodes_have_is_told_as_the_cause(standing: Rig, tmp_path: Path) -> None:
    twice = replace(standing, nodes={**standing.nodes, "c": replace(standing.nodes["c"], data_address=B)})
    forget = "ip neigh flush all"
    async with (
        fault(standing, "a", "true", forget),
        fault(standing, "b", "true", forget),
        fault(standing, "c", *(f"ip -4 addr flush dev eth0 && ip addr add {each}/24 dev eth0" for each in (B, C))),
    ):
        finding = only(await unhealthy(twice))
        assert finding.subject.names == ("b", "c")
        assert f"{B} is the data address of each of them" in finding.text
        assert finding.text in await refusal(twice, plan_of(standing, tmp_path, "pairs: [a -> b, a -> c]"))


@pytest.mark.usefixtures("runtime_folder")
async def test_the_round_trip_is_that_of_the_path_and_not_of_arp(tmp_path: Path) -> None:
    """200 ms over two links, which ARP before the first packet doubles: neighbours are forgotten before the check."""
    async with provided(rig(tmp_path, "a", "b", links="{rate: 1G, mtu: 1500, rtt: 100ms}")) as started:
        for name in "ab":
            await output(started, name, "ip neigh flush all")
        seen = await gathered(started, None, "a test")
    assert [190_000 <= (path.rtt_us or 0) < 350_000 for path in seen.paths] == [True, True], seen.paths


async def test_other_traffic_on_the_data_interface_is_told(standing: Rig) -> None:
    """At most 50 datagrams of 1400 bytes every 2 ms: 280 Mbit/s."""
    flood = (
        "import socket,time; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        f"while True: [s.sendto(bytes(1400),('{B}',9)) for _ in range(50)];"
        " print(flush=True); time.sleep(.002)"
    )
    async with login(standing, "a") as connection:
        sending = await connection.create_process(f'exec python3 -c "{flood}"')
        await sending.stdout.readline()
        findings = await unhealthy(standing)
        sending.terminate()
        await sending.wait()
    assert {each.subject.names for each in findings if "other traffic on eth0 now" in each.text} == {("a",), ("b",)}


async def test_a_node_that_is_not_reached_is_told_and_the_others_are_looked_at(standing: Rig) -> None:
    lost = replace(standing, nodes={**standing.nodes, "c": replace(standing.nodes["c"], port=1)})
    findings = judged(await gathered(lost, None, "a test"))
    texts = [finding.text for finding in findings if finding.level in UNHEALTHY]
    assert len(texts) == 1
    assert texts[0].startswith("c: connection refused by")
    assert any(finding.subject.names == ("a -> b", "b -> a") for finding in findings)
