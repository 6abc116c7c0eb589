"""A virtual rig looks like a real one, to its user, to SSH and to ip(8); whatever ends it, nothing of it stays."""

import asyncio
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from processes import DEADLINE_S, all_commands, ancestors, command_line, eventually, eventually_async, program, running
from user import ended
from virtual_rigs import NAME, answers, kept_up, login, machine, openssh, output, rig, sent_at_once, survivors

from rigctl.base import resources
from rigctl.base.errors import RigError
from rigctl.base.processes import Process
from rigctl.rig.inventory import Rig
from rigctl.virtual import disk
from rigctl.virtual.links import burst_bytes
from rigctl.virtual.provide import down, find_rigs, layout_of, provide, start, up
from rigctl.virtual.relay import relay_frames
from rigctl.virtual.state import sweep

pytestmark = pytest.mark.usefixtures("runtime_folder", "machine_unchanged")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig that is up, whose nodes differ. It has another name than those of which survivors are looked for."""
    slow = '{bottleneck: 100M, disk: 80M, sysctl: {net.ipv4.tcp_rmem: "4096 16384 65536", net.ipv4.tcp_sack: 0}}'
    nodes = f"{{a: , b: {{mtu: 9000}}, c: , slow: {slow}}}"
    made = rig(tmp_path_factory.mktemp("rig"), links="{rate: 200M, mtu: 1500}", nodes=nodes)
    with kept_up(replace(made, name=f"{NAME}up")) as started:
        yield started


async def test_each_node_has_what_the_file_says_of_it_and_is_an_ordinary_node(ready: Rig) -> None:
    shown = [json.loads(await output(ready, node, "ip -j address show dev eth0")) for node in ("a", "b")]
    (first,), (second,) = shown
    assert [first["mtu"], second["mtu"]] == [1500, 9000]
    assert [one["local"] for one in first["addr_info"] if one["scope"] == "global"] == ["10.77.0.1", "fd77::1"]
    node = ready.nodes["b"]
    assert (node.address, node.data_address, node.data_interface) == ("127.0.0.1", "10.77.0.2", "eth0")
    assert node.key is not None
    assert node.key.stat().st_mode & 0o077 == 0
    assert (await output(ready, "a", "ls /sys/class/net")).split() == ["eth0", "lo"]
    assert await answers(ready, "a", "b")
    tcp = "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_sack"
    said = await output(ready, "slow", f"{tcp}; tc qdisc show dev eth0")
    assert said.split()[:4] == ["4096", "16384", "65536", "0"]
    assert re.search(r"tbf .*rate 98[0-9]{3}Kbit", said), said  # its bottleneck
    assert "65536" not in (await output(ready, "b", tcp)).split()
    assert ready.nodes["slow"].link.rate_bps == 200 * 10**6


async def test_openssh_logs_in_by_the_rigs_key_alone_from_here_and_on_port_22_of_the_node(ready: Rig) -> None:
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    command = [*openssh(ready, "b"), "echo $RIGCTL_NODE; cat; exit 3"]
    how: dict[str, Any] = {"input": b"in\0put", "capture_output": True, "timeout": DEADLINE_S}
    done = await asyncio.to_thread(lambda: subprocess.run(command, **how))
    assert (done.stdout, done.returncode) == (b"b\nin\0put", 3), done.stderr
    assert await output(ready, "a", "bash -c 'exec 3<>/dev/tcp/10.77.0.2/22; head -c 8 <&3'") == "SSH-2.0-"
    node = ready.nodes["a"]
    with pytest.raises(asyncssh.PermissionDenied):
        who: dict[str, Any] = {"username": "root", "client_keys": [stranger], "password": "root"}
        await asyncssh.connect(node.address, node.port or 0, known_hosts=str(node.known_hosts), config=None, **who)


async def test_a_slow_disk_keeps_files_at_its_rate_and_only_its_node_sees_them(ready: Rig) -> None:
    write = "dd if=/dev/urandom of=f bs=64K count=16 conv=fdatasync; sha256sum <f; dd if=f iflag=nocache count=0"
    read = (
        "began=$(date +%s%N); sha256sum <f; echo $(($(date +%s%N) - began)); exec 3<f; rm f; head -c 65536 <&3 | wc -c"
    )
    said = await output(ready, "slow", f"cd /var/tmp; exec 2>/dev/null; {write}; {read}; ls; df . | tail -1")
    first, _, second, _, took_ns, rest, device, *_ = said.split()
    assert (first, rest, device) == (second, "65536", "disk-slow")
    assert int(took_ns) >= 1e9 * 8 * 16 * 65536 / 80e6
    assert "disk-" not in await output(ready, "b", "df /var/tmp")


async def test_a_node_cannot_send_more_than_its_link_to_two_destinations(ready: Rig) -> None:
    async def sent_so_far() -> str:
        return await output(ready, "a", "cat /sys/class/net/eth0/statistics/tx_bytes")

    sent, within_s = await sent_at_once(ready, [("a", "b"), ("a", "c")], 10**7, sent_so_far)
    assert 2 * 10**7 < sent <= 200e6 / 8 * within_s + burst_bytes(200 * 10**6, 1500)


async def test_full_frames_pass_larger_ones_do_not_between_names_that_ip_has_words_for(
    tmp_path: Path,
) -> None:
    names = ("lo", "br0", "all", "dev", "default", "a2345678901234-")
    async with provide(rig(tmp_path, *names, links="{rate: 1G, mtu: 9000}", ip_version=6)) as other:
        assert other.nodes["all"].data_address == "fd77::3"
        # 48 bytes of headers: RFC 8200, section 3, and RFC 4443.
        assert await answers(other, "lo", "all", "-6 -M do -s 8952")
        assert "0 received" in await output(other, "lo", "ping -6 -M do -c 1 -W 1 -s 8953 all || true")
        assert await answers(other, "all", "10.77.0.6")
        assert await answers(other, "lo", "10.77.0.2")


async def test_a_sysctl_that_a_namespace_has_not_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"a: sysctl net\.core\.rmem_max = 4096: "):
        async with provide(rig(tmp_path, nodes="{a: {sysctl: {net.core.rmem_max: 4096}}, b: }")):
            pass


async def test_a_loopback_rig_needs_no_namespaces(tmp_path: Path) -> None:
    async with provide(rig(tmp_path, "a", "b", virtual="loopback", links="{mtu: 65536}")) as local:
        addresses = [(node.address, node.data_address, node.data_interface) for node in local.nodes.values()]
        assert addresses == [("127.0.0.2", "127.0.0.2", "lo"), ("127.0.0.3", "127.0.0.3", "lo")]
        homes = [await output(local, name, "pwd") for name in ("a", "b")]
        assert homes[0] != homes[1]


async def test_nothing_of_a_rig_is_seen_outside_or_left_after(tmp_path: Path) -> None:
    before = machine()
    async with provide(rig(tmp_path)) as passing:
        await output(passing, "a", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
        assert machine() == before
        assert any("sleep 1000" in line for line in survivors(f"{NAME}-"))
    assert survivors(f"{NAME}-") == []
    assert list((tmp_path / "rigctl").iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "complaint", "message"),
    [
        ("unshare", "unshare: Operation not permitted", "neither as root nor in a user .*--rig loopback"),
        ("tc", "Error: Specified qdisc kind is unknown.", "Specified qdisc kind is unknown"),
    ],
)
async def test_a_rig_that_cannot_be_built_says_why(
    tmp_path: Path, runtime_folder: Path, monkeypatch: pytest.MonkeyPatch, tool: str, complaint: str, message: str
) -> None:
    fake = program(tmp_path / "bin" / tool, f"echo '{complaint}' >&2; exit 2")
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    with pytest.raises(RigError, match=message):
        async with provide(rig(tmp_path)):
            pass
    assert survivors(f"{NAME}-") == []
    assert list(runtime_folder.iterdir()) == []


def relays(module: str = "relay") -> list[int]:
    """Relays, or processes of another module, of rigs of this test process: descendants of its holders."""
    every = (pid for pid, words in all_commands() if f"rigctl.virtual.{module}" in words)
    return [pid for pid in every if any(f"{NAME}-" in command_line(above) for above in ancestors(pid))]


async def takes(ready: Rig, source: str, destination: str, low_ms: float, high_ms: float) -> None:
    """Wait for round trips of which none is lost, the least below `high_ms`; none may ever be below `low_ms`.

    ping does not wait for answers that take more than two of the round trips before, as on a busy machine.
    """

    async def seen() -> bool:
        said = await output(ready, source, f"ping -q -c 20 -i 0.01 {destination}")
        found = re.search(r"= ([\d.]+)/", said)
        assert found is not None
        least_ms = float(found[1])
        assert least_ms > low_ms
        return least_ms < high_ms and " 0% packet loss" in said

    await eventually_async(seen)


async def test_a_round_trip_takes_what_the_file_says_of_both_ends(tmp_path: Path) -> None:
    """bench_distance tells how exactly."""
    async with provide(rig(tmp_path, nodes="{near: , far: {rtt: 5ms}, farther: {rtt: 20ms}}")) as ready:
        await takes(ready, "near", "far", 3, 12)
        await takes(ready, "near", "farther", 17, 27)
        await takes(ready, "far", "farther", 20, 35)
        (link,) = json.loads(await output(ready, "far", "ip -j link show dev eth0"))
        assert (link["mtu"], link["address"]) == (1500, "02:77:00:00:00:02")
    assert relays() == []
    assert survivors(f"{NAME}-") == []


def test_less_than_the_machine_takes_is_refused(tmp_path: Path) -> None:
    """The machine takes 0.2 ms."""
    layout = layout_of(rig(tmp_path, nodes="{near: , far: {rtt: 0.1ms}}"))
    refusal = pytest.raises(
        RigError, match=r"far: rtt 0\.1 ms is too short \(this machine needs 0\.200 ms\)\. Set a larger rtt"
    )
    with refusal, relay_frames(layout, {"far": os.pipe()}, lambda _, __: 0.2e6):
        pass


async def test_full_frames_pass_in_ipv6_too_and_a_relay_that_dies_leaves_a_dead_link(tmp_path: Path) -> None:
    async with provide(rig(tmp_path, ip_version=6, nodes="{near: , far: {rtt: 5ms}}")) as ready:
        assert await answers(ready, "near", "far", "-6 -M do -s 1452")
        (relay,) = relays()
        os.kill(relay, signal.SIGKILL)
        await eventually_async(lambda: relays() == [])
        assert "0 received" in await output(ready, "near", "ping -6 -c 1 -W 1 far || true")
    assert survivors(f"{NAME}-") == []


def test_a_machine_without_fuse_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_DEVICE", "/dev/nothing")
    monkeypatch.setattr(disk, "_DISKS", tmp_path)
    layout = layout_of(rig(tmp_path, nodes="{a: {disk: 80M}, b: }"))
    with pytest.raises(RigError, match=r"a: a node with a disk needs /dev/nothing"), disk.slow_disks(layout):
        pass


@pytest.fixture(scope="module", params=["namespaces", "loopback"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = rig(tmp_path_factory.mktemp("rig"), "a", "b", virtual=request.param, links="{mtu: 1500}")
    with kept_up(replace(made, name=f"{NAME}up")) as started:
        yield started


async def test_commands_have_their_input_output_exit_code_and_signal_and_nodes_their_homes(either: Rig) -> None:
    async with login(either, "a") as connection:
        done = await connection.run("echo out; echo err >&2; exit 42")
        assert (done.stdout, done.stderr, done.exit_status) == ("out\n", "err\n", 42)
        assert (await connection.run("no-such-command")).exit_status == 127
        done = await connection.run("kill -SEGV $$")
        assert done.exit_signal and done.exit_signal[0] == "SEGV"
        assert (await connection.run("wc -c", input="12345")).stdout == "5\n"
        assert (await connection.run("exec <&-; sleep 0.1; echo done", input="x" * 10**6)).stdout == "done\n"
        assert (await connection.run(None, input="echo $((6*7))\n")).stdout == "42\n"
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process(subsystem="sftp")
        data = os.urandom(8 * 1024 * 1024)
        done = await connection.run("cat", input=data, encoding=None)
        assert isinstance(done.stdout, bytes)
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
        every = await asyncio.gather(*(connection.run(f"sleep 0.1; echo {number}") for number in range(9)))
        assert [one.stdout for one in every] == [f"{number}\n" for number in range(9)]
    await output(either, "a", "echo mine > ~/file")
    assert await output(either, "b", "ls ~; echo $RIGCTL_NODE") == "b\n"


async def test_a_lost_client_means_end_of_file_and_a_background_job_stays(either: Rig, tmp_path: Path) -> None:
    told, go, mark = tmp_path / "told", tmp_path / "go", tmp_path / "later"
    async with login(either, "a") as connection:
        # In a session of its own: the command is killed some seconds after the client has gone.
        reading = f"echo up; cat >/dev/null; echo eof > {told}"
        process = await connection.create_process(f"setsid --wait sh -c '{reading}'")
        assert await process.stdout.readline() == "up\n"
        connection.abort()
    await eventually_async(told.exists)
    waiting = f"until [ -e {go} ]; do sleep 0.02; done; touch {mark}"
    await output(either, "a", f"({waiting}) >/dev/null 2>&1 </dev/null &")
    go.touch()
    await eventually_async(mark.exists)


async def test_what_ignores_the_end_of_its_input_is_killed_with_its_children(either: Rig, tmp_path: Path) -> None:
    def alive() -> list[int]:
        return [pid for pid, words in all_commands() if str(tmp_path) in words]

    script = f"trap '' TERM HUP; echo up; while :; do sleep 0.05; : {tmp_path}; done"
    async with login(either, "a") as connection:
        process = await connection.create_process(f"sh -c {script!r} & wait")
        assert await process.stdout.readline() == "up\n"
        assert alive()
        connection.abort()
    await eventually_async(lambda: not alive())


def rigctl(*words: str) -> "subprocess.CompletedProcess[bytes]":
    return ended(("rig", *words), Path.cwd(), dict(os.environ))


def executing(file: str, command: str) -> list[str]:
    return [sys.executable, "-m", "rigctl", "rig", "exec", file, "a", "--", command]


def test_up_status_exec_down(tmp_path: Path) -> None:
    file = str(rig(tmp_path).source)
    assert b"not up" in rigctl("status", file).stdout
    started = rigctl("up", file)
    try:
        assert started.returncode == 0, started.stderr
        assert rigctl("up", file).stdout.startswith(f"{NAME}: is up already".encode())
        status = rigctl("status", file).stdout.decode()
        assert "b  10.77.0.2  eth0  1 Gbit/s  MTU 1500" in status
        ssh = next(line.strip() for line in status.splitlines() if line.strip().startswith("ssh "))
        command = [*shlex.split(ssh), "echo $RIGCTL_NODE"]
        said = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
        assert said.stdout == b"a\n", said.stderr
        assert rigctl("exec", file, "b", "--", "echo", "two  words").stdout == b"two  words\n"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with running(executing(file, "echo early >&2; cat"), **pipes) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == b"early\n"  # while it still waits for its input
            process.communicate(b"", timeout=DEADLINE_S)
            assert process.returncode == 0
    finally:
        ended = rigctl("down", file)
    assert (ended.returncode, ended.stdout) == (0, f"{NAME}: ended\n".encode())
    assert survivors(f"{NAME}-") == []


def test_exec_starts_a_rig_for_one_command_and_takes_a_file_as_input(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"x" * 300_000)
    command = executing(str(rig(tmp_path).source), "wc -c")
    with file.open("rb") as opened:
        done = subprocess.run(command, stdin=opened, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.stdout == b"300000\n", done.stderr
    assert survivors(f"{NAME}-") == []


@pytest.mark.parametrize("command", ["up", "down", "status"])
def test_a_real_rig_is_not_started(tmp_path: Path, command: str) -> None:
    file = tmp_path / "real.yaml"
    file.write_text("nodes:\n  a: {address: 127.0.0.1}\n  b: {address: 127.0.0.2}\n")
    done = rigctl(command, str(file))
    assert done.returncode == 2
    assert b"real: a real rig. Only virtual rigs can be started" in done.stderr


SCRIPT = """
import asyncio, os, subprocess, sys
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provide
sys.path.insert(0, sys.argv[2])
from virtual_rigs import answers, output

FOLLOWED = "until tc qdisc show dev eth0 | grep -o 'tbf.*rate 997083Kbit'; do sleep 0.02; done"

async def main():
    assert os.geteuid() != 0
    assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read()
    async with provide(load_rig(sys.argv[1])) as ready:
        print(await output(ready, "node001", "id -u; ls /sys/class/net"))
        assert await answers(ready, "node001", "node112")
        print(await output(ready, "node001", f"ip link set dev eth0 mtu 8192; {FOLLOWED}"))
        switch = ready.switches["cisco"]
        where = f"{switch.address}:{switch.snmp.port}"
        command = ["snmpwalk", "-v2c", "-c", switch.secrets.community, "-Oqv", where, ".1.3.6.1.2.1.31.1.1.1.1"]
        print(subprocess.run([*command, "-t", "30"], capture_output=True, text=True, check=True).stdout)

asyncio.run(main())
"""


def test_an_ordinary_user_has_the_same_rig_with_switches_that_answer_and_links_that_follow(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.yaml"
    file.write_text((resources.scenarios() / "rigs" / "das2.yaml").read_text())
    command = [sys.executable, "-c", SCRIPT, str(file), str(Path(__file__).parents[1] / "support")]
    if os.geteuid() == 0:
        # Another user may not be able to read this interpreter; an unprivileged namespace owned by us can, and has no
        # more rights over the machine than any user.
        command = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[:3] == ["0", "eth0", "lo"]
    assert "rate 997083Kbit" in done.stdout
    assert {'"trunk.0"', '"trunk.1"', '"node112"'} <= set(words)
    eventually(lambda: survivors(f"{NAME}-") == [])
    assert list((tmp_path / "rigctl").iterdir()) == []


@pytest.fixture
def machine_unchanged() -> Iterator[None]:
    before = machine()
    yield
    assert machine() == before


@pytest.mark.parametrize("part", ["holder", "starter"])
@pytest.mark.parametrize("kind", ["namespaces", "loopback"])
async def test_kill_9_of_holder_or_starter_leaves_nothing(part: str, kind: str, tmp_path: Path) -> None:
    slow = "{disk: 80M}" if kind == "namespaces" else ""
    tested = rig(tmp_path, virtual=kind, links="{mtu: 1500}", nodes=f"{{a: {slow}, b: }}")
    ready, state, _ = await up(tested)
    async with login(ready, "a") as connection:
        # Its third part waits for a slow disk: two minutes.
        await connection.create_process("sleep 1000 & sleep 1000 | head -c 1200M /dev/zero >/var/tmp/f")
        served = relays("disk")
        assert len(served) == (kind == "namespaces")
        victim: Process = getattr(state, part)
        os.kill(victim.pid, signal.SIGKILL)
        if kind == "namespaces":
            # The kernel's doing, without a next command.
            eventually(lambda: survivors(state.folder.name) == [])
            eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in served))
        eventually(lambda: not state.up)
    assert sweep() == [state.folder.name]
    eventually(lambda: survivors(state.folder.name) == [])
    assert find_rigs(tested) == []
    assert not state.folder.exists()


async def test_a_rig_that_stays_holds_nothing_open_of_what_its_starter_was_given(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # as flock(1) passes its lock on
    inventory = rig(tmp_path)
    await up(inventory)
    try:
        os.close(writer)
        os.set_blocking(reader, False)
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)
        await down(inventory)


async def test_a_starter_that_dies_before_it_wrote_the_state_leaves_no_rig(tmp_path: Path) -> None:
    started = await start(layout_of(rig(tmp_path)), source=None, stay=True)
    assert started.state.up
    started.lifeline.close()  # what the kernel does for a killed starter
    eventually(lambda: not started.state.up)
    assert sweep() == [started.state.folder.name]


async def test_another_definition_is_another_rig_and_down_ends_both(tmp_path: Path) -> None:
    await up(rig(tmp_path))
    changed = rig(tmp_path, links="{rate: 100M, mtu: 1500}")
    async with provide(changed) as ready:
        assert "rate 98439" in await output(ready, "a", "tc qdisc show dev eth0")
    await up(changed)
    assert len(await down(changed)) == 2
