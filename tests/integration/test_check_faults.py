"""`check` against faults that are really made: on a virtual rig, each with its finding; on hosts, held beside `run`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, sh
from processes import DEADLINE_S, mounted
from user import ended
from virtual_rigs import kept_up, login, output, rig

from rigctl.check.gather import gather_state
from rigctl.check.judge import judge_state
from rigctl.findings import Finding, Severity
from rigctl.records import Cell, Direction, Pair, RunPlan
from rigctl.rig.inventory import Rig
from rigctl.runner.nodes import nodes_of
from rigctl.virtual.provide import provide

UNHEALTHY = ERROR, WARNING = (Severity.ERROR, Severity.WARNING)
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
    return [finding for finding in judge_state(await gather_state(ready, None, "a test")) if finding.level in UNHEALTHY]


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [finding.code for finding in findings]
    return findings[0]


def nft(hook: str, rule: str) -> str:
    table = f"table inet fault {{ chain some {{ type filter hook {hook} priority 0; {rule}; }}; }}"
    return f"echo '{table}' | nft -f -"


async def test_a_clean_rig_has_no_warning_and_says_what_is_in_order(standing: Rig) -> None:
    findings = judge_state(await gather_state(standing, None, "a test"))
    assert [finding.code for finding in findings if finding.level in UNHEALTHY] == []
    (sizes,) = (finding for finding in findings if "path_mtu_bytes" in finding.numbers)
    assert dict(sizes.numbers) == {"path_mtu_bytes": 9000, "icmp_payload_bytes": 8972, "ethernet_frame_bytes": 9014}
    assert len(sizes.subject.names) == 6


async def test_a_black_hole_of_ipv6_is_the_only_finding_of_its_rig(standing: Rig) -> None:
    nodes = {name: replace(standing.nodes[name], data_address=f"fd77::{at}") for at, name in enumerate("ab", 1)}
    async with fault(standing, "b", nft("input", 'iifname "eth0" ip6 length > 3000 drop')):
        hole = only(await unhealthy(replace(standing, nodes=nodes, ip_version=6)))
        assert (hole.code, hole.subject.names) == ("black-hole", ("a -> b",))
        assert (hole.numbers["path_mtu_bytes"], hole.numbers["icmp_payload_bytes"]) == (3040, 2992)


OTHER = "ip link add m0 type veth peer name m1 && ip link set m0 up && ip link set m1 up"
UP = "ip link set dev eth0 up && ip address add fd77::2/64 dev eth0 nodad"
WRONG = f"ip neigh replace {B} lladdr 02:00:00:00:00:99 dev eth0 nud permanent"  # as if a third host had been faster


@pytest.mark.parametrize(
    ("level", "names", "node", "command", "undo", "code", "remedy"),
    [
        (WARNING, "b", "b", "ip link set dev eth0 mtu 1500", "ip link set dev eth0 mtu 9000",
         "mtu-off", "On the node, as root: ip link set dev eth0 mtu 9000"),
        (WARNING, "a -> b", "a", nft("output", f"ip daddr {B} udp dport 1-65535 drop"), NO_RULE,
         "port-own-firewall", ""),
        (ERROR, "a -> b", "b", nft("input", f"ip saddr {A} ct state new drop"), NO_RULE,
         "port-dropped", ""),
        (ERROR, "a", "a", WRONG, f"ip neigh del {B} dev eth0",
         "neighbour-other", ""),
        (ERROR, "a", "a", f"ip route add prohibit {B}/32", f"ip route del prohibit {B}/32",
         "route-forbids", "On the node, as root: ip route del prohibit"),
        (ERROR, "a", "a", f"{OTHER} && ip route add {B}/32 dev m0", "ip link del m0",
         "route-elsewhere", ""),
        (ERROR, "b", "b", "ip link set dev eth0 down", UP,
         "link-down", ""),
    ],
    ids=["a smaller MTU", "the sender's firewall", "a silent firewall", "another host answers", "a route that forbids",
         "a route by another interface", "an interface that is down"],
)  # fmt: skip
async def test_a_fault_is_the_only_finding_and_told_with_its_cause(
    standing: Rig, level: Severity, names: str, node: str, command: str, undo: str, code: str, remedy: str
) -> None:
    async with fault(standing, node, command, undo):
        finding = only(await unhealthy(standing))
    assert (finding.code, finding.subject.names, finding.level) == (code, (names,), level)
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
    assert (answered.level, answered.code) == (Severity.WARNING, "path-mtu")
    assert (answered.numbers["path_mtu_bytes"], answered.numbers["told_mtu"]) == (1400, 1400)
    (route,) = (finding for finding in findings if finding is not answered)
    assert (route.code, route.subject.names) == ("route-mtu", ("c",))
    assert route.numbers == {"route_mtu": 1400, "mtu": 9000}


async def test_a_firewall_that_rejects_is_told_with_what_came_back(standing: Rig) -> None:
    rule = (
        'iifname "eth0" meta l4proto tcp reject with tcp reset; '
        'iifname "eth0" meta l4proto udp reject with icmp type admin-prohibited'
    )
    async with fault(standing, "b", nft("input", rule)):
        findings = await unhealthy(standing)
    (finding,) = (each for each in findings if "a -> b" in each.subject.names)
    assert finding.code == "port-rejected"


async def test_a_cache_without_execution_is_passed_over_and_told(standing: Rig, cache: Path) -> None:
    instead = f"mkdir -p ~/.cache && mv ~/.cache ~/kept && ln -s {cache} ~/.cache"
    async with fault(standing, "a", instead, "rm ~/.cache && mv ~/kept ~/.cache"):
        findings = judge_state(await gather_state(standing, None, "a test"))
    (note,) = (finding for finding in findings if finding.level is Severity.NOTE)
    assert (note.code, note.subject.names) == ("agent-folder", ("a",))


@pytest.mark.usefixtures("runtime_folder")
async def test_the_round_trip_is_that_of_the_path_and_not_of_arp(tmp_path: Path) -> None:
    """200 ms over two links, which ARP before the first packet doubles: neighbours are forgotten before the check."""
    async with provide(rig(tmp_path, "a", "b", links="{rate: 1G, mtu: 1500, rtt: 100ms}")) as started:
        for name in "ab":
            await output(started, name, "ip neigh flush all")
        seen = await gather_state(started, None, "a test")
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
    assert {each.subject.names for each in findings if each.code == "other-traffic"} == {("a",), ("b",)}


async def test_a_node_that_is_not_reached_is_told_and_the_others_are_looked_at(standing: Rig) -> None:
    lost = replace(standing, nodes={**standing.nodes, "c": replace(standing.nodes["c"], port=1)})
    findings = judge_state(await gather_state(lost, None, "a test"))
    (refused,) = [finding for finding in findings if finding.level in UNHEALTHY]
    assert (refused.code, refused.subject.names) == ("unreachable", ("c",))
    assert any(finding.subject.names == ("a -> b", "b -> a") for finding in findings)


async def test_on_a_rig_in_use_the_other_tests_are_rehearsed_and_the_check_says_so(standing: Rig) -> None:
    cells = (Cell(1, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1), Cell(2, "tcp", (Pair("b", "c"),), 1.0, 0.0, 1))
    plan = RunPlan("t", "", "s", "", "rig", "", (), 1, cells)
    async with nodes_of(standing, "another run") as others:
        await others.agents(["c"])
        findings = judge_state(await gather_state(standing, plan, "a test"))
    assert [(each.code, each.subject.names) for each in findings if each.level is ERROR] == [("unreachable", ("c",))]
    (part,) = (each for each in findings if each.code == "rehearsed-in-part")
    assert (part.numbers["done"], part.numbers["wanted"]) == (1, 2)


async def test_a_rehearsal_leaves_no_connection_that_takes_a_port_of_the_next_run(standing: Rig) -> None:
    flows = Cell(1, "tcp", (Pair("a", "b"), Pair("b", "a")), 1.0, 0.0, 20, direction=Direction.BOTH)
    plan = RunPlan("t", "", "s", "", "rig", "", (), 1, (flows,))
    (done,) = (each for each in judge_state(await gather_state(standing, plan, "a test")) if each.code == "rehearsed")
    assert done.numbers == {"done": 1, "wanted": 1}
    for name in "ab":
        assert await output(standing, name, f"ss -Htan dst {A} or dst {B} | grep -v :22 || true") == ""


PI1, PI2 = "10.98.0.1", "10.98.0.2"


@dataclass(frozen=True)
class Fault:
    """Describe a fault: lines that replace others in the rig file; commands on pi1, each with what undoes it."""

    name: str
    edits: tuple[tuple[str, str], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


def at_pi1(name: str, keys: str, *commands: tuple[str, str]) -> Fault:
    """A fault of the keys of pi1, behind its address."""
    return Fault(name, ((f"{PI1}, ", f"{PI1}, {keys}, "),), commands)


def without_interface(name: str, keys: str, *commands: tuple[str, str]) -> Fault:
    return Fault(name, ((f"{PI1}, {TRUST}, data_interface: eth0", f"{PI1}, {TRUST}, {keys}"),), commands)


TRUST = "user: root, key: id, known_hosts: known"
DUMMY = ("ip link add other type bridge", "ip link del other")
DROP = "table inet fault { chain in { type filter hook input priority 0; iifname eth0 tcp dport != 22 drop; }; }"
HOLE = "blackhole 10.98.0.2/32"
LISTEN = "for port in 5001 5002; do python3 -m http.server $port >/dev/null 2>&1 & echo $! >>listeners; done; sleep 1"
FAULTS = [
    Fault("an address that nobody has", ((PI1, "10.98.0.77"),)),
    Fault("a name that is not known", ((PI1, "no-such-host.invalid"),)),
    Fault("an IPv6 address without a route", ((PI1, "2001:db8::1"),)),
    Fault("the same host twice", ((f"pi2: {{address: {PI2}", f"pi2: {{address: {PI1}"),)),
    Fault("a key that is missing", (("key: id", "key: none"),)),
    Fault("a key that opens nothing", (("key: id", "key: pi1/host_key"),)),
    Fault("a file of known hosts that is missing", (("known_hosts: known", "known_hosts: none"),)),
    Fault("a file of known hosts without the host", (("known_hosts: known", "known_hosts: lab.yaml"),)),
    Fault("a user who is not there", (("user: root", "user: nobody-here"),)),
    at_pi1("a port on which nobody listens", "port: 2222"),
    at_pi1("a jump host that nobody has", "jump: root@10.98.0.88"),
    at_pi1("a jump host that refuses", f"jump: stranger@{PI2}"),
    at_pi1("srun without Slurm", "transport: srun"),
    Fault("an interface that is not there", (("data_interface: eth0", "data_interface: eth9"),)),
    Fault("the loopback interface", (("data_interface: eth0", "data_interface: lo"),)),
    without_interface("an interface without an address", "data_interface: other", DUMMY, ("ip link set other up", ":")),
    without_interface("an interface that is down", "data_interface: other", DUMMY,
                      ("ip address add 10.98.7.1/24 dev other", ":")),
    without_interface("an interface of another network", "data_interface: other", DUMMY,
                      ("ip link set other up; ip address add 10.98.8.1/24 dev other", ":")),
    without_interface("a data address that it has not", "data_address: 10.99.0.9"),
    without_interface("the other node's data address", f"data_address: {PI2}"),
    without_interface("a data address of the loopback", "data_address: 127.0.0.1"),
    without_interface("a link-local data address", "data_address: 169.254.3.4",
                      ("ip address add 169.254.3.4/16 dev eth0", "ip address del 169.254.3.4/16 dev eth0")),
    without_interface("a link-local address of IPv6", "data_address: fe80::77",
                      ("ip address add fe80::77/64 dev eth0 nodad", "ip address del fe80::77/64 dev eth0")),
    without_interface("one end with IPv6", "data_address: 'fd00::1'",
                      ("ip address add fd00::1/64 dev eth0 nodad", "ip address del fd00::1/64 dev eth0")),
    at_pi1("too few ports", "data_ports: 5000-5000"),
    at_pi1("ports that are taken", "data_ports: 22-1024"),
    at_pi1("ports with a listener", "data_ports: 5001-5002", (LISTEN, "kill $(cat listeners); rm listeners")),
    Fault("a firewall that drops", (), ((f"echo '{DROP}' | nft -f -", "nft delete table inet fault"),)),
    Fault("a route that goes nowhere", (), ((f"ip route add {HOLE}", f"ip route del {HOLE}"),)),
    at_pi1("root's rights without a password", "sudo: true, data_ports: 5000-5000"),
]  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("against")
    with laboratory(folder, ["pi1", "pi2"]) as made:
        (folder / "good.yaml").write_text((folder / "lab.yaml").read_text())
        yield made


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_no_traffic_can_start_before_a_run_that_cannot_start(lab: Lab, fault: Fault) -> None:
    text = (lab.folder / "good.yaml").read_text()
    for old, new in fault.edits:
        assert old in text
        text = text.replace(old, new, 1) if old == PI1 else text.replace(old, new)
    (lab.folder / "lab.yaml").write_text(text)
    (lab.folder / "s.yaml").write_text(
        "rig: lab.yaml\npairs: [pi1 -> pi2, pi2 -> pi1]\nduration: 500ms\nmax_skew: 60s\nlatency: true\n"
    )
    with ExitStack() as undone:
        for command, undo in fault.commands:
            sh(*lab.inside("pi1", "sh", "-c", command))
            undone.callback(sh, *lab.inside("pi1", "sh", "-c", undo))
        checked, ran = (said(lab, *words) for words in (("check", "s.yaml"), ("run", "s.yaml", "--no-report")))
    assert ran[0] != 0, "the fault is none"
    assert checked[0] != 0, f"check: {checked[1]}\nrun: {ran[1]}"
    assert "Traceback" not in checked[1] + ran[1]


def said(lab: Lab, *words: str) -> tuple[int, str]:
    done = ended(words, lab.folder, lab.environment, network=lab.network)
    return done.returncode, (done.stdout + done.stderr).decode()
