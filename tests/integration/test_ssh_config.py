"""What ssh(1) accepts in ~/.ssh/config, known_hosts and keys, rigctl accepts; servers that limit what they take."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from openssh import USER, Hanging, Sshd, SshdFactory, Start, new_key
from processes import eventually, eventually_async, running

from rigctl.base.errors import NodeError
from rigctl.remote.host import connected
from rigctl.rig.inventory import Node

pytestmark = pytest.mark.usefixtures("home")


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
    usual = [
        f"Port {server.port}",
        f"User {USER}",
        f"IdentityFile {server.key}",
        f"UserKnownHostsFile {server.known_hosts}",
    ]
    text = "\n".join([*lines, "Host *", *usual])
    (home / ".ssh/config").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")


async def said(node: Node) -> str:
    async with connected(node) as host:
        return (await host.run("echo $SSH_CONNECTION")).stdout


@pytest.mark.parametrize(
    "line",
    [
        "ConnectTimeout 30s",
        "User root # me",
        "Match all # everybody",
        'Match exec "test 1 = 1"',
        "PKCS11Provider /nonexistent.so",
        "PubkeyAuthentication unbound",
        "# na\udcefve, not in UTF-8",
        "IdentityFile ~/.ssh/missing",
        "CertificateFile ~/.ssh/missing-cert.pub",
        "IdentityFile ~/.ssh/empty",
        "IdentityFile ~/.ssh/foreign",
        "IdentitiesOnly yes",
        "Include ~/.ssh/none/*",
        "KexAlgorithms +diffie-hellman-group14-sha1",
        "HostKeyAlgorithms ssh-ed25519",
        "IgnoreUnknown UseKeychain\nUseKeychain yes",
        "IPQoS none\nControlMaster auto\nControlPath ~/.ssh/%C\nControlPersist 10m",
    ],
)
async def test_what_ssh_accepts_in_its_config_is_accepted(server: Sshd, home: Path, line: str) -> None:
    (home / ".ssh/empty").touch(0o600)
    (home / ".ssh/foreign").write_text("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n")
    write_config(home, server, line)
    accepted = subprocess.run(["ssh", "-F", home / ".ssh/config", "-G", "127.0.0.1"], capture_output=True, check=False)
    assert accepted.returncode == 0, accepted.stderr
    assert str(server.port) in await said(plain(server))


@pytest.mark.parametrize(
    "line",
    [
        "pi1",
        "@nonsense pi1 ssh-ed25519 AAAA",
        "pi1 ssh-ed25519 not-base-64",
        "|1|short|hash ssh-ed25519 AAAA",
        "\udcef",
    ],
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


async def test_what_was_passed_over_stands_in_the_refusal(server: Sshd, home: Path, tmp_path: Path) -> None:
    wrong = new_key(tmp_path / "wrong")
    (home / ".ssh/config").write_text(
        f"Host *\n  IdentityFile ~/.ssh/gone\n  IdentityFile {wrong}\n  UserKnownHostsFile {server.known_hosts}\n"
    )
    with pytest.raises(NodeError) as caught:
        await said(plain(server, port=server.port, user=USER))
    assert f"keys tried: {wrong}." in str(caught.value)
    assert str(caught.value).endswith("Passed over: ~/.ssh/config:2: ~/.ssh/gone is not there")


async def test_a_key_of_the_agent_is_chosen_by_its_public_half(
    server: Sshd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "agent"
    with running(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL):
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        eventually(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1, "no answer")
        for key in (*(new_key(tmp_path / f"k{number}") for number in range(7)), server.key):  # MaxAuthTries is 6
            subprocess.run(["ssh-add", "-q", str(key)], check=True)
        (home / ".ssh/lab.pub").write_text(server.key.with_suffix(".pub").read_text())
        write_config(home, server, "Host *", "  IdentityFile ~/.ssh/lab.pub", "  IdentitiesOnly yes")
        assert str(server.port) in await said(plain(server))
        write_config(home, server, "Host *", "  IdentityFile ~/.ssh/lab.pub")  # the identities' own keys come first
        assert str(server.port) in await said(plain(server))


async def test_a_proxy_command_is_the_way(server: Sshd, home: Path) -> None:
    relay = "import socket, sys, threading; s = socket.create_connection((sys.argv[1], int(sys.argv[2])))"
    script = home / "relay.py"
    script.write_text(
        f"{relay}\nimport os\n"
        "def copy(read, write):\n    while data := read(65536): write(data)\n"
        "threading.Thread(target=copy, args=(lambda n: os.read(0, n), s.sendall), daemon=True).start()\n"
        "copy(s.recv, lambda data: os.write(1, data))\n"
    )
    way = f"  ProxyCommand {sys.executable} {script} %h %p"
    write_config(home, server, "Host lab", "  HostName 127.0.0.1", way)
    assert str(server.port) in await said(plain(server, "lab"))


async def test_a_server_with_one_session_per_connection_gets_several(sshd: Start, hanging: Hanging) -> None:
    strict = sshd("MaxSessions 1")
    async with connected(strict.node()) as host:
        async with host.process(hanging.command):
            await eventually_async(lambda: hanging.begun)
            assert (await host.run("echo second")).stdout == "second\n"
            assert len(strict.sessions()) >= 2
    none = sshd("MaxSessions 0")
    with pytest.raises(NodeError, match="is MaxSessions in its sshd_config 0"):
        await said(none.node())


async def test_nodes_behind_a_jump_host_share_its_connection(sshd: Start) -> None:
    gate, inner = sshd("MaxStartups 2:100:2"), sshd()
    (gate.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    inner.known_hosts.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    nodes = [inner.node(f"pi{number}", jump=f"{USER}@127.0.0.1:{gate.port}") for number in range(12)]
    inside = asyncio.Barrier(len(nodes))

    async def work(node: Node) -> int:
        async with connected(node) as host:
            await host.run("true")
            await inside.wait()
            return len(gate.sessions())

    assert set(await asyncio.gather(*map(work, nodes))) == {1}
    assert gate.emptied()


async def test_a_start_that_is_dropped_is_tried_again(sshd: Start) -> None:
    strict = sshd("MaxStartups 1:100:1")
    answers = await asyncio.gather(*(said(strict.node(f"pi{number}")) for number in range(6)))
    assert all(str(strict.port) in answer for answer in answers)


async def test_a_server_that_drops_all_is_named_with_its_tries(monkeypatch: pytest.MonkeyPatch, sshd: Start) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.MOST_DROPS", 3)
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as closing:
        port = closing.sockets[0].getsockname()[1]
        with pytest.raises(NodeError, match=r"it dropped 3 connections before it said anything. Is that an SSH server"):
            await said(sshd().node(port=port))


async def test_a_server_that_rigctl_made_is_reached_whatever_the_config_says(server: Sshd, home: Path) -> None:
    (home / ".ssh/config").write_text("Host *\n  ProxyJump gate.example\n  User nobody-here\nThis is no option\n")
    assert str(server.port) in await said(server.node(configured=False, user=None))


async def test_without_ssh_on_the_controller_the_config_is_read_all_the_same(
    server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rigctl.remote.ssh_config.shutil.which", lambda _: None)
    write_config(home, server)
    assert str(server.port) in await said(plain(server))
    assert str(server.port) in await said(server.node())
    (home / ".ssh/config").unlink()
    with pytest.raises(NodeError, match="its host key is not known"):
        await said(server.node(known_hosts=None))


async def test_a_key_that_the_config_does_not_name_is_not_passed_over(server: Sshd, home: Path) -> None:
    (home / ".ssh/config").write_text("Host elsewhere\n  IdentityFile ~/.ssh/id_rsa_lab\n")
    with pytest.raises(NodeError) as caught:
        await said(server.node(key=None))
    assert "keys tried: none" in str(caught.value)
    assert "Passed over" not in str(caught.value)
