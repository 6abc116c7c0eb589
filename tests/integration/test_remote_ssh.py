"""SSH against real OpenSSH servers: what works, and how each failure reads."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from openssh import USER, Hanging, Start, kept_port, new_key
from processes import DEADLINE_S, eventually, eventually_async, running

from rigctl.base.errors import NodeError, RigError
from rigctl.base.texts import printable
from rigctl.cli import app
from rigctl.remote import host as host_module
from rigctl.remote.host import connected
from rigctl.rig.inventory import Node

pytestmark = pytest.mark.usefixtures("home")


async def refusal(node: Node) -> str:
    with pytest.raises(NodeError) as caught:
        async with connected(node):
            pass
    assert caught.value.node == node.name
    return str(caught.value)


async def test_output_is_bounded(sshd: Start) -> None:
    async with connected(sshd().node()) as host:
        with pytest.raises(NodeError, match="pi1: more than 4194304 bytes of output: yes"):
            await host.run("yes")


async def test_lines_come_one_by_one_and_a_huge_one_in_parts(sshd: Start) -> None:
    async with (
        connected(sshd().node()) as host,
        host.process("echo one; read x; echo got $x; head -c 100000 /dev/zero; echo; echo -n end") as process,
    ):
        assert await process.readline() == b"one\n"
        process.write(b"two\n")
        assert await process.readline() == b"got two\n"
        assert len(await process.readline()) == host_module.LINE_BOUND
        assert len(await process.readline()) == 100_001 - host_module.LINE_BOUND
        assert await process.readline() == b"end"
        assert await process.readline() == b""
        assert await process.wait() == 0


async def test_a_process_sees_its_block_end(sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", DEADLINE_S)  # a file system that others sync can hold a file up
    async with connected(sshd().node()) as host:
        async with host.process(f"cat >/dev/null; echo over > {tmp_path}/ended"):
            pass
        assert (tmp_path / "ended").read_text() == "over\n"


async def test_a_process_that_ignores_the_end_of_its_input_holds_nobody_up(
    sshd: Start, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    async with connected(sshd().node()) as host:
        async with host.process(hanging.command):
            await eventually_async(lambda: hanging.begun)
        assert (await host.run("echo next")).stdout == "next\n"


async def test_the_last_words_of_a_process_say_why_it_ended(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "LAST_WORDS_DEADLINE_S", DEADLINE_S)
    async with connected(sshd().node()) as host:
        async with host.process("echo first >&2; echo 'no such luck' >&2; exit 3") as process:
            assert await process.readline() == b""
            assert await process.last_words() == "no such luck (exit code 3)"


async def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_the_command_that_trusts_it(
    sshd: Start, home: Path
) -> None:
    server = sshd()
    node = server.node(known_hosts=None)
    message = await refusal(node)
    assert message.startswith(f"pi1: its host key is not known: ssh-ed25519 {server.fingerprint}.")
    command = message.partition("if it is the same: ")[2]
    subprocess.run(["sh", "-c", command], check=True, env={"HOME": str(home), "PATH": os.environ["PATH"]})
    async with connected(node) as host:
        assert (await host.run("echo in")).stdout == "in\n"


async def test_a_changed_host_key_is_refused_and_the_command_given_mends_it(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    other = new_key(tmp_path / "other").with_suffix(".pub").read_text().split()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    message = await refusal(server.node())
    assert f"its host key has CHANGED: it now shows ssh-ed25519 {server.fingerprint}" in message
    assert str(server.known_hosts) in message
    subprocess.run(["sh", "-c", message.partition("reinstalled: ")[2]], check=True, capture_output=True)
    async with connected(server.node()):
        pass


async def test_a_config_that_would_trust_anyone_is_not_followed(sshd: Start, home: Path) -> None:
    (home / ".ssh/config").write_text("Host *\n  UserKnownHostsFile none\n  StrictHostKeyChecking no\n")
    assert "its host key is not known" in await refusal(sshd().node(known_hosts=None))


async def test_each_refusal_names_its_cause_and_what_to_do(sshd: Start, tmp_path: Path) -> None:
    server, wrong = sshd(), new_key(tmp_path / "wrong")
    message = await refusal(server.node(key=wrong))
    assert f"127.0.0.1 port {server.port} refuses to log in {USER}; keys tried: {wrong}." in message
    assert f"ssh-copy-id -p {server.port} {USER}@127.0.0.1" in message
    assert "ssh-add it first" in await refusal(server.node(key=new_key(tmp_path / "locked", passphrase="secret")))
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
    async with connected(server.node(key=None)):
        pass


async def test_a_key_in_the_ssh_agent_is_used(sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, socket_path = sshd(), tmp_path / "agent"
    with running(["ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.DEVNULL):
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_path))
        eventually(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1, "no answer")
        for number in range(7):  # more than the server's MaxAuthTries
            subprocess.run(["ssh-add", "-q", str(new_key(tmp_path / f"k{number}"))], check=True)
        with pytest.raises(NodeError, match="Offered in this order: 7 keys of the ssh-agent"):
            async with connected(server.node(key=None)):
                pass
        async with connected(server.node()):  # the rig's own key is not drowned by them
            pass
        subprocess.run(["ssh-add", "-q", "-D"], check=True)
        subprocess.run(["ssh-add", "-q", str(server.key)], check=True)
        async with connected(server.node(key=None)):
            pass


async def test_a_server_that_never_answers_costs_its_deadline(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.CONNECT_DEADLINE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        message = await refusal(sshd().node(port=silent.getsockname()[1], patience=1))
        assert "no answer from 127.0.0.1" in message
        assert "within 0.3 s. Is it up?" in message


async def test_what_is_no_ssh_server_is_told(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.MOST_DROPS", 2)

    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 200)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(web, "127.0.0.1", 0)
    async with server:
        assert "Is that an SSH server?" in await refusal(sshd().node(port=server.sockets[0].getsockname()[1]))


async def test_an_alias_of_the_ssh_config_is_honoured_and_the_rig_file_wins(sshd: Start, home: Path) -> None:
    server = sshd()
    alias = f"Host lab-pi\n  HostName 127.0.0.1\n  Port {server.port}\n  User nobody-of-that-name\n"
    trust = f"  IdentityFile {server.key}\n  UserKnownHostsFile {server.known_hosts}\n"
    (home / ".ssh/config").write_text(alias + trust)
    plain = server.node(address="lab-pi", port=None, key=None, known_hosts=None)
    async with connected(plain) as host:
        assert (await host.run("id -un")).stdout.strip() == USER
    assert "refuses to log in nobody-of-that-name" in await refusal(replace(plain, user=None))


async def test_a_jump_host_is_gone_through(sshd: Start) -> None:
    gate, inner = sshd(), sshd()
    gate_key = gate.folder / "authorized_keys"
    gate_key.write_text(inner.key.with_suffix(".pub").read_text())
    inner.known_hosts.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    async with connected(inner.node(jump=f"{USER}@127.0.0.1:{gate.port}")) as host:
        way = (await host.run("echo $SSH_CONNECTION")).stdout.split()
        assert way[3] == str(inner.port)
        assert len(gate.sessions()) == 1
    assert gate.emptied()


async def test_a_jump_host_that_fails_is_named(sshd: Start) -> None:
    gate, inner = sshd(), sshd()
    jump = f"127.0.0.1:{gate.port}"
    assert (await refusal(inner.node(jump=jump))).startswith(f"pi1: jump host {jump}: its host key is not known")
    with kept_port() as port:
        closed = f"127.0.0.1:{port}"
        assert f"pi1: jump host {closed}: connection refused" in await refusal(inner.node(jump=closed))
    assert 'jump host "a b": expected [user@]host[:port]' in await refusal(inner.node(jump="a b"))
    inner.known_hosts.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    (gate.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    with kept_port() as port:
        assert "not reached through its jump host" in await refusal(inner.node(jump=jump, port=port))


async def test_a_connection_that_is_cut_fails_the_command_at_once(sshd: Start, hanging: Hanging) -> None:
    server = sshd()
    async with connected(server.node()) as host:
        work = asyncio.create_task(host.run(hanging.command, deadline_s=3600))
        await eventually_async(lambda: hanging.begun)
        server.signal(server.sessions(), signal.SIGKILL)
        with pytest.raises(NodeError, match="pi1: the SSH connection was lost"):
            await work
        with pytest.raises(NodeError, match="pi1: "):
            await host.run("echo")


async def test_silence_of_the_network_is_noticed(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.KEEPALIVE_S", 0.2)
    server = sshd()
    async with connected(server.node(patience=1)) as host:
        frozen = server.sessions()
        server.signal(frozen, signal.SIGSTOP)
        try:
            with pytest.raises(NodeError, match=r"pi1: the SSH connection was lost.*not responding"):
                await host.run("echo", deadline_s=DEADLINE_S)
        finally:
            server.signal(frozen, signal.SIGCONT)


async def test_a_key_that_others_may_read_is_not_used(sshd: Start) -> None:
    server = sshd()
    server.key.chmod(0o644)
    said = await refusal(server.node())
    assert said == (
        f"pi1: key {server.key}: others may read it (mode 0644), so it is not used. "
        f"If it is still yours alone: chmod 600 {server.key}"
    )
    server.key.chmod(0o400)
    async with connected(server.node()):
        pass


async def test_known_hosts_and_keys_without_end_are_not_read(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    zero = Path("/dev/zero")
    for node in (server.node(known_hosts=zero), server.node(key=zero)):
        assert "/dev/zero: expected a file, this is a folder, a device" in await refusal(node)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    assert f"known_hosts {large}: expected at most 1 MiB" in await refusal(server.node(known_hosts=large))


DISCONNECTED = "\x1b]0;pwned\x07\x1b[31mSPOOFED\x1b[0m\nok: all is well\u202e"


@contextlib.contextmanager
def disconnecting(reason: str) -> Iterator[int]:
    """The port of a server that answers with a reason to disconnect (RFC 4253, 11.1), before any key is shown."""
    text = reason.encode()
    payload = b"\x01" + struct.pack(">II", 11, len(text)) + text + bytes(4)
    padding = 16 - (len(payload) + 5) % 8
    packet = struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"SSH-2.0-x\r\n")
                    connection.recv(4096)
                    connection.sendall(packet)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_what_answers_at_a_nodes_address_commands_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = tmp_path / "rig.yaml"
    with disconnecting(DISCONNECTED) as port:
        rig.write_text("".join(["nodes:\n", *(f"  n{n}: {{address: 127.0.0.{n}, port: {port}}}\n" for n in (1, 2))]))
        code = app.exit_code(["check", str(rig)])
    told = capsys.readouterr()
    assert code == RigError.exit_code
    assert "SPOOFED" in told.out
    assert not [line for line in (told.out + told.err).splitlines() if printable(line) != line]
    assert not [line for line in told.out.splitlines() if line.startswith("ok: all is well")]
