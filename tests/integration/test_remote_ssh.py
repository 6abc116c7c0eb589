"""SSH against real OpenSSH servers: what works, how each failure reads, and what ssh(1) accepts in its files."""

import asyncio
import os
import re
import signal
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cases import from_file
from openssh import USER, Hanging, Sshd, SshdFactory, Start, gate_and_inner, kept_port, new_key, sessions_at_once
from processes import DEADLINE_S, eventually, eventually_async, program, running, signal_all

from rigctl.base.errors import NodeError, RigError
from rigctl.base.processes import process
from rigctl.base.texts import printable
from rigctl.cli import app
from rigctl.remote import host as host_module
from rigctl.remote.host import connect_node
from rigctl.rig.inventory import Node

pytestmark = pytest.mark.usefixtures("home")


async def refusal(node: Node) -> str:
    with pytest.raises(NodeError) as caught:
        async with connect_node(node):
            pass
    assert caught.value.node == node.name
    return str(caught.value)


async def test_lines_come_one_by_one_a_huge_one_in_parts_and_output_is_bounded(sshd: Start) -> None:
    command = "echo one; read x; echo got $x; head -c 100000 /dev/zero; echo; echo -n end"
    async with connect_node(sshd().node()) as host, host.process(command) as process:
        assert await process.readline() == b"one\n"
        process.write(b"two\n")
        assert await process.readline() == b"got two\n"
        assert len(await process.readline()) == host_module.LINE_BOUND
        assert len(await process.readline()) == 100_001 - host_module.LINE_BOUND
        assert await process.readline() == b"end"
        assert await process.readline() == b""
        assert await process.wait() == 0
        with pytest.raises(NodeError, match="pi1: more than 4194304 bytes of output: yes"):
            await host.run("yes")


async def test_a_process_sees_its_block_end(sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", DEADLINE_S)  # a file system that others sync can hold a file up
    async with connect_node(sshd().node()) as host:
        async with host.process(f"cat >/dev/null; echo over > {tmp_path}/ended"):
            pass
        assert (tmp_path / "ended").read_text() == "over\n"


async def test_a_process_that_ignores_the_end_of_its_input_holds_nobody_up(
    sshd: Start, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    async with connect_node(sshd().node()) as host:
        async with host.process(hanging.command):
            await eventually_async(lambda: hanging.begun)
        assert (await host.run("echo next")).stdout == "next\n"


async def test_an_unknown_host_key_is_refused_whatever_the_config_says_with_the_command_that_trusts_it(
    sshd: Start, home: Path
) -> None:
    server = sshd()
    for file in ("none", "/dev/null"):
        (home / ".ssh/config").write_text(f"Host *\n  UserKnownHostsFile {file}\n  StrictHostKeyChecking no\n")
        for transport in ("ssh", "openssh"):
            message = await refusal(server.node(known_hosts=None, transport=transport))
            assert transport == "openssh" or message.startswith(
                f"pi1: its host key is not known: ssh-ed25519 {server.fingerprint}."
            )
    message = await refusal(server.node(known_hosts=None))
    command = message.partition("if it is the same, trust it: ")[2]
    assert command.endswith(" >> ~/.ssh/known_hosts")
    subprocess.run(["sh", "-c", command], check=True, env={"HOME": str(home), "PATH": os.environ["PATH"]})
    for transport in ("ssh", "openssh"):
        async with connect_node(server.node(known_hosts=None, transport=transport)) as host:
            assert (await host.run("echo in")).stdout == "in\n"


async def test_a_changed_host_key_is_refused_and_the_command_given_mends_it(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    other = new_key(tmp_path / "other").with_suffix(".pub").read_text().split()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    message = await refusal(server.node())
    assert f"its host key has CHANGED: it now shows ssh-ed25519 {server.fingerprint}" in message
    assert str(server.known_hosts) in message
    subprocess.run(["sh", "-c", message.partition("reinstalled: ")[2]], check=True, capture_output=True)
    async with connect_node(server.node()):
        pass


async def test_each_refusal_names_its_cause_and_what_to_do(sshd: Start, tmp_path: Path) -> None:
    server, wrong = sshd(), new_key(tmp_path / "wrong")
    message = await refusal(server.node(key=wrong))
    assert f"127.0.0.1 port {server.port} refuses to log in {USER}; keys tried: {wrong}." in message
    assert f"ssh-copy-id -p {server.port} {USER}@127.0.0.1" in message
    assert "by ssh-add first" in await refusal(server.node(key=new_key(tmp_path / "locked", passphrase="secret")))
    assert f"key {tmp_path}/nokey is not there" in await refusal(server.node(key=tmp_path / "nokey"))
    assert "keys tried: none: there is no key in ~/.ssh and no ssh-agent" in await refusal(server.node(key=None))
    with kept_port() as port:
        closed = f"pi1: connection refused by 127.0.0.1 port {port}. Is an SSH server running there, on that port?"
        assert await refusal(server.node(port=port)) == closed
    unknown = 'the name "no-such-host.invalid" is not known'
    assert unknown in await refusal(server.node(address="no-such-host.invalid"))


async def test_a_refused_key_of_the_home_folder_is_named_by_its_file(sshd: Start, home: Path, tmp_path: Path) -> None:
    wrong, named = new_key(home / ".ssh/id_ed25519", comment="somebody"), new_key(tmp_path / "named", comment="else")
    server = sshd()
    message = await refusal(server.node(key=None))
    assert f"keys tried: {wrong}." in message
    assert "IdentityFile in ~/.ssh/config" in message
    (home / ".ssh/config").write_text(f"Host *\n  IdentityFile {named}\n")
    assert f"keys tried: {named}." in await refusal(server.node(key=None))
    (home / ".ssh/config").write_text(f"Host *\n  IdentityFile {server.key}\n")
    async with connect_node(server.node(key=None)):
        pass


@pytest.fixture
def seven_keys(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent with more keys than a server's MaxAuthTries, for whoever has the home."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    with running(["ssh-agent", "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL):
        eventually(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1, "no answer")
        subprocess.run(["ssh-add", "-q", *(new_key(tmp_path / f"k{number}") for number in range(7))], check=True)
        yield


@pytest.mark.usefixtures("seven_keys")
async def test_a_key_in_the_ssh_agent_is_used(sshd: Start) -> None:
    server = sshd()
    assert "Offered in this order: 7 keys of the ssh-agent" in await refusal(server.node(key=None))
    async with connect_node(server.node()):  # the rig's own key is not drowned by them
        pass
    subprocess.run(["ssh-add", "-q", "-D"], check=True)
    subprocess.run(["ssh-add", "-q", server.key], check=True)
    async with connect_node(server.node(key=None)):
        pass


async def test_a_server_that_never_answers_costs_its_deadline(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.CONNECT_DEADLINE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        message = await refusal(sshd().node(port=silent.getsockname()[1], patience=1))
        assert "no answer from 127.0.0.1" in message
        assert "within 0.3 s. Is it up?" in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 200, ""), (b"", "it dropped 3 connections before it sent its version. ")],
    ids=["a web server", "a server that drops all"],
)
async def test_what_is_no_ssh_server_is_told(
    sshd: Start, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str
) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.MOST_DROPS", 3)

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer:
            await reader.readline()
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        node = sshd().node(port=server.sockets[0].getsockname()[1])
        assert f"{words}Is that an SSH server?" in await refusal(node)


async def test_an_alias_of_the_ssh_config_is_honoured_and_the_rig_file_wins(sshd: Start, home: Path) -> None:
    server = sshd()
    alias = f"Host lab-pi\n  HostName 127.0.0.1\n  Port {server.port}\n  User nobody-of-that-name\n"
    trust = f"  IdentityFile {server.key}\n  UserKnownHostsFile {server.known_hosts}\n"
    (home / ".ssh/config").write_text(alias + trust)
    plain = server.node(address="lab-pi", port=None, key=None, known_hosts=None)
    async with connect_node(plain) as host:
        assert (await host.run("id -un")).stdout.strip() == USER
    assert "refuses to log in nobody-of-that-name" in await refusal(replace(plain, user=None))


async def test_a_jump_host_that_fails_is_named(sshd: Start) -> None:
    gate, inner = sshd(), sshd()
    jump = f"127.0.0.1:{gate.port}"
    assert (await refusal(inner.node(jump=jump))).startswith(f"pi1: jump host {jump}: its host key is not known")
    with kept_port() as port:
        gone = f"127.0.0.1:{port}"
        assert f"pi1: jump host {gone}: connection refused" in await refusal(inner.node(jump=gone))
    assert 'jump host "a b": expected [user@]host[:port]' in await refusal(inner.node(jump="a b"))
    inner.known_hosts.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    (gate.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    with kept_port() as port:
        assert "its jump host could not connect to" in await refusal(inner.node(jump=jump, port=port))
    closed = sshd("AllowTcpForwarding no")
    inner.known_hosts.write_text(inner.known_hosts.read_text() + closed.known_hosts.read_text())
    (closed.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    message = await refusal(inner.node(jump=f"{USER}@127.0.0.1:{closed.port}"))
    assert message.endswith("The jump host's sshd_config must allow it: AllowTcpForwarding, PermitOpen")


async def test_a_connection_that_is_cut_fails_the_command_at_once(sshd: Start, hanging: Hanging) -> None:
    server = sshd()
    async with connect_node(server.node()) as host:
        work = asyncio.create_task(host.run(hanging.command, deadline_s=3600))
        await eventually_async(lambda: hanging.begun)
        server.cut()
        with pytest.raises(NodeError, match="pi1: the SSH connection was lost"):
            await work
        with pytest.raises(NodeError, match="pi1: "):
            await host.run("echo")


async def test_silence_of_the_network_is_noticed(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.KEEPALIVE_S", 0.2)
    server = sshd()
    async with connect_node(server.node(patience=1)) as host:
        frozen = server.serving()
        signal_all(frozen, signal.SIGSTOP)
        try:
            with pytest.raises(NodeError, match=r"pi1: the SSH connection was lost.*not responding"):
                await host.run("echo", deadline_s=DEADLINE_S)
        finally:
            signal_all(frozen, signal.SIGCONT)


async def test_keys_that_others_may_read_or_without_end_and_such_known_hosts_are_not_read(
    sshd: Start, tmp_path: Path
) -> None:
    server = sshd()
    server.key.chmod(0o644)
    said = f"pi1: key {server.key}: others may read it (mode 0644), so it is not used. "
    assert await refusal(server.node()) == f"{said}If nobody else has read it: chmod 600 {server.key}"
    server.key.chmod(0o400)
    async with connect_node(server.node()):
        pass
    zero = Path("/dev/zero")
    for node in (server.node(known_hosts=zero), server.node(key=zero)):
        assert "/dev/zero: expected a file, found a folder, device" in await refusal(node)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    assert f"known_hosts {large}: expected at most 1 MiB" in await refusal(server.node(known_hosts=large))


DISCONNECTED = "\x1b]0;pwned\x07\x1b[31mSPOOFED\x1b[0m\nok: all is well\u202e"


class Disconnecting(socketserver.BaseRequestHandler):
    """Answers with a reason to disconnect (RFC 4253, 11.1), before any key is shown."""

    def handle(self) -> None:
        text = DISCONNECTED.encode()
        payload = b"\x01" + struct.pack(">II", 11, len(text)) + text + bytes(4)
        padding = 16 - (len(payload) + 5) % 8
        packet = struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)
        self.request.sendall(b"SSH-2.0-x\r\n")
        self.request.recv(4096)
        self.request.sendall(packet)


def test_what_answers_at_a_nodes_address_commands_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = tmp_path / "rig.yaml"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Disconnecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        nodes = [f"  n{n}: {{address: 127.0.0.{n}, port: {server.server_address[1]}}}\n" for n in (1, 2)]
        rig.write_text("".join(["nodes:\n", *nodes]))
        code = app.exit_code(["check", str(rig)])
        server.shutdown()
    told = capsys.readouterr()
    assert code == RigError.exit_code
    assert "SPOOFED" in told.out
    assert not [line for line in (told.out + told.err).splitlines() if printable(line) != line]
    assert not [line for line in told.out.splitlines() if line.startswith("ok: all is well")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    factory = SshdFactory(tmp_path_factory.mktemp("config"))
    yield factory()
    factory.servers[0].stop()


def plain(server: Sshd, address: str = "127.0.0.1", **more: object) -> Node:
    """The server as a node for which the rig file gives an address only."""
    nothing: dict[str, object] = dict.fromkeys(("port", "user", "key", "known_hosts"))
    return server.node("pi1", **nothing | {"address": address} | more)


def write_config(home: Path, server: Sshd, *lines: str) -> None:
    usual = [f"Port {server.port}", f"User {USER}", f"IdentityFile {server.key}"]
    text = "\n".join([*lines, "Host *", *usual, f"UserKnownHostsFile {server.known_hosts}"])
    (home / ".ssh/config").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")


async def said(node: Node) -> str:
    async with connect_node(node) as host:
        return (await host.run("echo $SSH_CONNECTION")).stdout


@from_file
async def test_what_ssh_accepts_in_its_config_is_accepted(server: Sshd, home: Path, line: str) -> None:
    (home / ".ssh/empty").touch(0o600)
    (home / ".ssh/foreign").write_text("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n")
    write_config(home, server, line.replace("User root", f"User {USER}"))
    accepted = subprocess.run(["ssh", "-F", home / ".ssh/config", "-G", "127.0.0.1"], capture_output=True, check=False)
    assert accepted.returncode == 0, accepted.stderr
    assert str(server.port) in await said(plain(server))


@pytest.mark.parametrize(
    "line",
    ["pi1", "@no pi1 ssh-ed25519 AAAA", "pi1 ssh-ed25519 not-base-64", "|1|short|hash ssh-ed25519 AAAA", "\udcef"],
)
async def test_lines_of_known_hosts_that_say_nothing_are_passed_over(server: Sshd, home: Path, line: str) -> None:
    known = home / ".ssh/known_hosts"
    known.write_bytes(f"{line}\n{server.known_hosts.read_text()}".encode("utf-8", "surrogateescape"))
    write_config(home, server, "UserKnownHostsFile ~/.ssh/known_hosts ~/.ssh/second")
    assert str(server.port) in await said(plain(server))
    assert str(server.port) in await said(server.node(known_hosts=known))


async def test_what_ssh_refuses_costs_the_node_and_names_file_and_line(server: Sshd, home: Path) -> None:
    write_config(home, server, "Host other", "Prot 22")
    with pytest.raises(NodeError, match=r"ssh refuses them: \S*/\.ssh/config: line 2: Bad configuration option: prot"):
        await said(plain(server))


async def test_a_key_that_is_not_there_stands_in_the_refusal_if_the_config_names_it(
    server: Sshd, home: Path, tmp_path: Path
) -> None:
    (home / ".ssh/config").write_text("Host elsewhere\n  IdentityFile ~/.ssh/id_rsa_lab\n")
    message = await refusal(server.node(key=None))
    assert "keys tried: none" in message
    assert "Passed over" not in message
    wrong = new_key(tmp_path / "wrong")
    (home / ".ssh/config").write_text(
        f"Host *\n  IdentityFile ~/.ssh/gone_%r\n  IdentityFile {wrong}\n  UserKnownHostsFile {server.known_hosts}\n"
    )
    message = await refusal(plain(server, port=server.port, user=USER))
    assert f"keys tried: {wrong}." in message
    assert message.endswith(f"Passed over: ~/.ssh/config:2: ~/.ssh/gone_{USER} is not there")


@pytest.mark.usefixtures("seven_keys")
@pytest.mark.parametrize("more", [["  IdentitiesOnly yes"], []])  # else the identities' own keys come first
async def test_a_key_of_the_agent_is_chosen_by_its_public_half(server: Sshd, home: Path, more: list[str]) -> None:
    subprocess.run(["ssh-add", "-q", server.key], check=True)
    (home / ".ssh/lab.pub").write_text(server.key.with_suffix(".pub").read_text())
    write_config(home, server, "Host *", "  IdentityFile ~/.ssh/lab.pub", *more)
    assert str(server.port) in await said(plain(server))


@pytest.mark.parametrize("name", ["%u_%i", "%h_%r", "%k_%n", "%l_%L", "%C", "of_${OF_LAB}_%%"])
async def test_each_token_stands_for_what_ssh_says(
    server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OF_LAB", "rack7")
    (home / f".ssh/known_{server.port}").write_bytes(server.known_hosts.read_bytes())
    files = (f"  IdentityFile ~/.ssh/{name}", "  UserKnownHostsFile %d/.ssh/known_%p")
    write_config(home, server, "Host lab", "  HostName 127.0.0.1", *files)
    config = str(home / ".ssh/config")
    tried = subprocess.run(["ssh", "-v", "-F", config, "-o", "BatchMode=yes", "lab", "true"], capture_output=True)
    (file,) = re.findall(r"identity file (\S+) type", tried.stderr.decode())[:1]
    key = home / ".ssh" / Path(file).name
    key.write_bytes(server.key.read_bytes())
    key.chmod(0o600)
    assert str(server.port) in await said(plain(server, "lab"))


async def test_a_proxy_command_is_the_way(server: Sshd, home: Path) -> None:
    write_config(home, server, "Host lab", "  HostName 127.0.0.1", "  ProxyCommand busybox nc %h %p")
    assert str(server.port) in await said(plain(server, "lab"))


@pytest.mark.parametrize(
    ("rest", "refused"),
    [
        ("exec busybox nc $1 $2", False),
        ("exec sleep 300", True),
        ("sleep 300 | cat", True),
        ("echo no SSH; exit 1", True),
    ],
    ids=["connected", "hangs", "a child hangs", "fails"],
)
async def test_nothing_that_a_proxy_command_started_outlives_its_connection(
    server: Sshd, home: Path, tmp_path: Path, rest: str, refused: bool
) -> None:
    noted = tmp_path / "pids"
    script = program(tmp_path / "proxy", f"sleep 300 </dev/null & echo $! $$ >{noted}\n{rest}")
    write_config(home, server, "Host lab", "  HostName 127.0.0.1", f"  ProxyCommand {script} %h %p")
    asked = asyncio.create_task(said(plain(server, "lab")))
    await eventually_async(lambda: noted.exists() and noted.read_text().endswith("\n"))
    pids = [int(word) for word in noted.read_text().split()]
    if refused:
        asked.cancel()  # as its deadline does
    with suppress(asyncio.CancelledError, NodeError):
        assert str(server.port) in await asked
    await eventually_async(lambda: not any(process(pid) for pid in pids))


async def test_a_server_with_one_session_per_connection_gets_several(sshd: Start, hanging: Hanging) -> None:
    strict = sshd("MaxSessions 1")
    async with connect_node(strict.node()) as host:
        async with host.process(hanging.command):
            await eventually_async(lambda: hanging.begun)
            assert (await host.run("echo second")).stdout == "second\n"
            assert len(strict.sessions()) >= 2
    none = sshd("MaxSessions 0")
    with pytest.raises(NodeError, match="Is MaxSessions in its sshd_config 0"):
        await said(none.node())


async def test_nodes_behind_a_jump_host_share_its_connection(sshd: Start) -> None:
    gate, inner = gate_and_inner(sshd)
    nodes = [inner.node(f"pi{number}", jump=f"{USER}@127.0.0.1:{gate.port}") for number in range(12)]
    assert await sessions_at_once(gate, nodes) == {1}
    assert gate.emptied()


async def test_a_start_that_is_dropped_is_tried_again(sshd: Start) -> None:
    strict = sshd("MaxStartups 1:100:1")
    answers = await asyncio.gather(*(said(strict.node(f"pi{number}")) for number in range(6)))
    assert all(str(strict.port) in answer for answer in answers)


async def test_a_server_that_rigctl_made_is_reached_whatever_the_config_says(server: Sshd, home: Path) -> None:
    (home / ".ssh/config").write_text("Host *\n  ProxyJump gate.example\n  User nobody-here\nThis is no option\n")
    assert str(server.port) in await said(server.node(configured=False, user=None))


async def test_without_ssh_on_the_controller_the_config_is_read_all_the_same(
    server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rigctl.remote.openssh.options.shutil.which", lambda _: None)
    write_config(home, server)
    assert str(server.port) in await said(plain(server))
    assert str(server.port) in await said(server.node())
    (home / ".ssh/config").unlink()
    assert "its host key is not known" in await refusal(server.node(known_hosts=None))
