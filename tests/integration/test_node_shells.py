"""Nodes without a POSIX login shell, OpenSSH or GNU's tools, or with FreeBSD: commands, facts and whole runs."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from busybox_host import dropbear, serve_small
from cases import from_file
from freebsd_host import CC_TABLE, IFCONFIG, NETSTAT, NO_CARRIER, OTHERS, PCICONF, ROUTED
from node_trees import TREES, made
from openssh import Start
from openssh_lab import laboratory
from processes import DEADLINE_S, eventually, output_of, program

from rigctl.base.errors import NodeError
from rigctl.base.units import parse_processors
from rigctl.hosts import candidate
from rigctl.hosts.fact import command_for
from rigctl.hosts.facts import CHECK_FACTS, gather_facts, read_facts
from rigctl.hosts.surroundings import ask_surroundings
from rigctl.remote.children import children_on
from rigctl.remote.deploy import agent_on, deploy
from rigctl.remote.host import connect_node

pytestmark = pytest.mark.usefixtures("home")


def forced(shell: str, folder: Path, start_up: str = ":") -> str:
    """Return what makes a server run each command in `shell`, as for a user whose login shell it is, after `start_up`.

    The start-up files of this machine's own user may print something: the user has another home.
    """
    command = f'{start_up}; exec {shell} -c "$SSH_ORIGINAL_COMMAND"'
    return f"ForceCommand {command}\nSetEnv XDG_CACHE_HOME={folder} HOME={folder.parent}"


@pytest.mark.parametrize("shell", ["fish", "tcsh", "busybox sh", "bash"])
async def test_commands_facts_and_agent_work_in_every_login_shell(sshd: Start, tmp_path: Path, shell: str) -> None:
    async with connect_node(sshd(forced(shell, tmp_path / "cache")).node()) as host:
        said = await host.run("for each in 1 2; do\n  printf '%s\\n' \"it's $each! \\\\\"\ndone; exit 3")
        assert (said.stdout, said.stderr, said.exit_code) == ("it's 1! \\\nit's 2! \\\n", "", 3)
        assert (await host.run("cat\n", input=b"a\x01\x02\n")).output == b"a\x01\x02\n"
        found = await gather_facts(host.output, replace(host.node, data_interface="lo"))
        assert json.dumps(found) != "{}"
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0


@from_file
async def test_a_login_shell_that_runs_nothing_is_told(sshd: Start, tmp_path: Path, shell: str, said: str) -> None:
    async with connect_node(sshd(forced(shell, tmp_path / "cache")).node()) as host:
        with pytest.raises(NodeError, match=rf"{said}\. Give the user a login shell"):
            await deploy(host)
    assert not (tmp_path / "cache").exists()


WELCOME = {
    "a line": "echo Welcome to lab",
    "no line end": "printf 'Linux x86_64'",
    "what looks like an answer": "echo there 0 /tmp/agent; echo @@rigctl ok",
    "much": "seq 20000",
    "errors": "echo oops >&2",
}
"""What a ~/.bashrc prints before each command (the trap of scp and rsync)."""


@pytest.mark.parametrize("start_up", WELCOME.values(), ids=WELCOME)
async def test_what_a_start_up_file_prints_is_passed_over(sshd: Start, tmp_path: Path, start_up: str) -> None:
    async with connect_node(sshd(forced("sh", tmp_path / "cache", start_up)).node()) as host:
        assert (await host.run("cat; exit 3", input=b"a\0\n")).output == b"a\0\n"
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0


PRELOADED = ["/nope.so", "/usr/lib/libarmmem-${PLATFORM}.so", "/nope.so:/other.so"]


@pytest.mark.parametrize("library", PRELOADED)
async def test_a_library_that_every_program_misses_is_no_answer(sshd: Start, tmp_path: Path, library: str) -> None:
    """ld.so prints a line on standard error for every program, as with a stale /etc/ld.so.preload."""
    server = sshd(f"SetEnv LD_PRELOAD={library} XDG_CACHE_HOME={tmp_path} HOME={tmp_path.parent}")
    async with connect_node(server.node()) as host:
        assert "ld.so" in (await host.run("ls /")).stderr
        around = await ask_surroundings(host.output, "lo", "127.0.0.1", ["127.0.0.2", "192.0.2.0"], ["/"])
        assert (around.routes["127.0.0.2"].device, around.routes["127.0.0.2"].reason) == ("lo", "")
        assert "ld.so" not in around.routes["192.0.2.0"].reason
        assert around.disks[0].free_bytes
        assert (await gather_facts(host.output, replace(host.node, data_interface="lo")))["kernel"].startswith("Linux")
        async with agent_on(host) as agent:
            assert (agent.note, (await agent.clock()).node_ns > 0) == (None, True)
        async with children_on(host, DEADLINE_S) as children:
            ended = await children.wait_end(children.start(["echo", "done"]))
        assert (ended.exit_code, ended.output.strip().splitlines()[-1]) == (0, b"done")


async def test_a_start_up_file_that_waits_for_input_is_named_and_gets_none_of_ours(
    sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_up = f"echo Your name?; read name; echo $name >{tmp_path}/eaten"
    async with connect_node(sshd(forced("sh", tmp_path / "cache", start_up)).node()) as host:
        monkeypatch.setattr("rigctl.remote.host.BEGIN_DEADLINE_S", 0.5)
        with pytest.raises(NodeError, match=r"did not start a command within .*Does a start-up file of the user"):
            await host.run("cat", input=b"agent")
    assert "agent" not in ((tmp_path / "eaten").read_text() if (tmp_path / "eaten").exists() else "")


async def test_a_forced_command_that_runs_nothing_of_ours_is_told(sshd: Start) -> None:
    async with connect_node(sshd("ForceCommand echo this account is for backups").node()) as host:
        with pytest.raises(NodeError, match=r'no command runs there: "this account is for backups" \(exit code 0\)'):
            await deploy(host)


async def test_on_dropbear_commands_run_side_by_side_and_an_unknown_key_is_told(
    tmp_path: Path,
) -> None:
    with dropbear(tmp_path) as server:
        async with connect_node(server.node()) as host:

            async def one_after_the_other(which: int) -> list[str]:
                return [(await host.run(f"echo {which}.{number}")).stdout for number in range(15)]

            async with host.process("cat") as lasting:
                said = await asyncio.gather(*map(one_after_the_other, range(4)))
                lasting.write(b"still here\n")
                assert await lasting.readline() == b"still here\n"
        assert said == [[f"{which}.{number}\n" for number in range(15)] for which in range(4)]
        with pytest.raises(NodeError, match="pi1: its host key is not known: ssh-ed25519 SHA256:"):
            async with connect_node(server.node(known_hosts=None)):
                pass


def test_hosts_with_busybox_alone_are_checked_measured_and_left_as_they_were(tmp_path: Path) -> None:
    with laboratory(tmp_path, ["pi1", "pi2"], serve_small) as lab:
        assert json.loads(lab.rigctl("check", "lab.yaml", "--json"))["errors"] == 0
        (tmp_path / "s.yaml").write_text(
            "rig: lab.yaml\npairs: [pi1 -> pi2]\nduration: 500ms\nmax_skew: 60s\n"
            "conditions: {small: {mtu: 1400, sysctl: {net.ipv4.tcp_sack: 0}, offload: {gro: off}}}\n"
        )
        lab.rigctl("run", "s.yaml", "--no-report")
        exported = lab.rigctl("export", "--format", "json", "--level", "pairs")
        assert [row["mtu"] for row in json.loads(exported)] == [1400]
        eventually(lambda: [len(lab.processes(name)) for name in ("pi1", "pi2")] == [1, 1])
        for name in ("pi1", "pi2"):
            assert not list((tmp_path / name / "root/.cache").rglob("settings-*"))


ENTER = 'mount --bind /dev/null "$1/dev/null" && exec chroot "$1" /bin/sh -c "$2"'


@pytest.mark.parametrize("name", TREES)
def test_busybox_and_the_files_of_a_node_are_enough(name: str, tmp_path: Path) -> None:
    made(TREES[name], tmp_path)
    for folder in ("bin", "dev"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dev/null").touch()
    busybox = shutil.which("busybox")
    assert busybox is not None, "the Debian package busybox-static is missing"
    shutil.copy(busybox, tmp_path / "bin/busybox")
    for applet in ("sh", "cat", "grep", "readlink", "ls", "uname", "od", "tr", "nproc", "id", "date"):
        (tmp_path / "bin" / applet).symlink_to("busybox")
    words = ["unshare", "-rm", "sh", "-c", ENTER, "sh", str(tmp_path), command_for(CHECK_FACTS, "eth0", "10.0.0.1")]
    said = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S)
    assert said.stderr == ""
    found = read_facts(said.stdout, CHECK_FACTS)
    expected = TREES[name].facts
    assert {key: found[key] for key in expected} == expected
    assert found["pause"] is None


def test_of_what_a_kernel_lacks_nothing_is_known_and_processors_are_those_of_this_machine() -> None:
    found = read_facts(output_of(["sh", "-c", f"{command_for(CHECK_FACTS, 'lo', '')}\ntrue"]), CHECK_FACTS)
    assert (found["interface"], found.keys() >= CHECK_FACTS.keys()) == ("lo", True)
    assert {found[key] for key in ("numa_node", "interrupt_processors", "rps", "pause", "rx_queues")} == {None}
    assert parse_processors(found["allowed_processors"]) >= os.sched_getaffinity(0)
    lists = Path("/sys/devices/system/node").glob("node*/cpulist")
    nodes = {path.parent.name.removeprefix("node"): path.read_text().strip() for path in lists}
    assert found["numa_processors"] == ({node: cpus for node, cpus in nodes.items() if cpus} or None)


PROGRAMS = {
    "uname": 'case "$*" in -s) echo FreeBSD ;; -n) echo bsd ;; *) echo FreeBSD 14.1-RELEASE amd64 ;; esac',
    "ifconfig": 'case "$1" in -l) echo ix0 em0 lo0 ;; -a) cat ALL ;; ix0) cat IX0 ;; *) exit 1 ;; esac',
    "netstat": 'case "$*" in *-rn*) cat NETSTAT ;; *) printf "head\\n 12 0 0 125000 10 0 2500 0\\n" ;; esac',
    "route": "cat ROUTED",
    "pciconf": "cat PCICONF",
    "sysctl": 'for n in "$@"; do case "$n" in *available) cat CC ;; kern.vm_guest) echo none ;; kern.*) echo "$n-1" ;; '
    "net.*algorithm) echo net.inet.tcp.cc.algorithm: cubic ;; esac; done",
}
TEXTS = {"ALL": IFCONFIG + NO_CARRIER + OTHERS, "IX0": IFCONFIG, "CC": CC_TABLE}
TEXTS |= {"NETSTAT": NETSTAT, "ROUTED": ROUTED, "PCICONF": PCICONF}


def answered(command: str, folder: Path) -> str:
    """Return what `command` prints where these programs are found first."""
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text)
    for name, body in PROGRAMS.items():
        for text in TEXTS:
            body = body.replace(f"cat {text}", f"cat {shlex.quote(str(folder / f'{text}.txt'))}")
        program(folder / name, body)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SSH_CONNECTION": "10.0.0.9 50122 10.0.0.1 22"}
    return subprocess.check_output(["sh", "-c", command], env=environment, text=True, timeout=DEADLINE_S)


async def test_what_a_check_and_rig_init_ask_freebsd_comes_back_from_the_shell(tmp_path: Path) -> None:
    found = read_facts(answered(command_for(CHECK_FACTS, None, "10.0.0.1"), tmp_path), CHECK_FACTS)
    assert (found["interface"], found["mtu"], found["speed_bps"]) == ("ix0", 9000, 10**10)
    assert (found["up"], found["carrier"], found["pcie"]["width"]) == (True, 1, 4)
    assert found["sysctls"] == {"net.inet.tcp.cc.algorithm": "cubic", "net.inet.tcp.cc.available": "cubic newreno"}
    assert found["time_s"] > 1_700_000_000

    async def run(command: str) -> str:
        return answered(command, tmp_path)

    around = await ask_surroundings(run, "ix0", "10.0.0.1", ["10.0.0.2"], [str(tmp_path)], ["htcp"])
    assert (around.routes["10.0.0.2"].device, around.routes["10.0.0.2"].mtu) == ("ix0", 9000)
    assert (around.rx_bps, around.tx_bps) == (1_000_000, 20_000)
    assert around.disks[0].free_bytes
    host = candidate.read_candidate(answered(command_for(candidate.CANDIDATE_FACTS), tmp_path))
    assert (host.system, host.machine, host.has_ip) == ("FreeBSD", "amd64", True)
    assert list(host.interfaces) == ["ix0", "em0", "lagg0", "ix0.20"]
    assert len(host.routes) == 5
    assert host.identity == ("kern.boottime-1", "kern.hostuuid-1")
    assert (host.ssh_address, host.is_virtual) == ("10.0.0.1", False)
