"""What ssh(1) can, rigctl can: against real OpenSSH servers, with everyday settings that asyncssh does not know."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from busybox_host import dropbear
from openssh import USER, Hanging, Sshd, SshdFactory, Start, gate_and_inner, new_key, places, sessions_at_once
from processes import (
    DEADLINE_S,
    all_commands,
    eventually,
    eventually_async,
    program,
    running,
    signal_all,
    turns,
)

from rigctl.base.errors import NodeError
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import connect_node
from rigctl.remote.lock import LockRequest
from rigctl.rig.inventory import Node

pytestmark = pytest.mark.usefixtures("home")


async def said(node: Node, command: str = "echo $SSH_CONNECTION") -> str:
    async with connect_node(node) as host:
        return (await host.run(command)).stdout


async def refusal(node: Node) -> str:
    with pytest.raises(NodeError) as caught:
        await said(node)
    return str(caught.value)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    factory = SshdFactory(tmp_path_factory.mktemp("openssh"))
    yield factory()
    factory.servers[0].stop()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Start an ssh-agent. Yield a function that adds a key to it."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    ask = program(tmp_path / "ask", f"echo >>{tmp_path}/asked; until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    environment = os.environ | {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":none"}
    with running(["ssh-agent", "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL, env=environment):
        eventually(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1, "no answer")
        yield lambda *words: subprocess.check_call(["ssh-add", "-q", *words])


@pytest.fixture
def without_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide ssh(1), as on a controller where it is not installed."""
    monkeypatch.setattr("rigctl.remote.openssh.options.shutil.which", lambda _: None)


def plain(server: Sshd, address: str = "127.0.0.1", **more: object) -> Node:
    """The server as a node for which the rig file gives an address only."""
    nothing: dict[str, object] = dict.fromkeys(("port", "user", "key", "known_hosts"))
    return server.node("pi1", **nothing | {"address": address} | more)


def write_config(home: Path, server: Sshd, *lines: str, key: bool = True, known: bool = True) -> None:
    usual = [f"Port {server.port}", f"User {USER}"]
    usual += [f"IdentityFile {server.key}"] if key else []
    usual += [f"UserKnownHostsFile {server.known_hosts}"] if known else []
    (home / ".ssh/config").write_text("\n".join([*lines, "Host *", *usual]) + "\n")


def certify(authority: Path, public: Path, *words: str) -> Path:
    """Sign a public key. Return the certificate, which is beside it."""
    subprocess.run(["ssh-keygen", "-q", "-s", authority, "-I", "test", *words, public], check=True)
    return public.with_name(public.name.replace(".pub", "-cert.pub"))


# Host keys


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's runtime folder, with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    "words",
    [
        ("-h", "-n", "127.0.0.1", "-V", "20200101:20200102"),
        ("-h", "-n", "another.example"),
        ("-h", "-n", "127.0.0.1", "-V", "20400101:20400102"),
    ],
    ids=["expired", "of another host", "not valid yet"],
)
async def test_a_bad_host_certificate_beside_the_known_host_key_is_passed_over_as_by_ssh(
    sshd: Start, tmp_path: Path, words: tuple[str, ...]
) -> None:
    authority = new_key(tmp_path / "ca")
    folder = tmp_path / "certified"
    folder.mkdir()
    key = new_key(folder / "host")
    certificate = certify(authority, folder / "host.pub", *words)
    server = sshd(f"HostKey {key}", f"HostCertificate {certificate}")
    place = f"[127.0.0.1]:{server.port}"
    trust = f"@cert-authority {place} {authority.with_suffix('.pub').read_text()}"
    server.known_hosts.write_text(f"{trust}{place} {(folder / 'host.pub').read_text()}")
    assert str(server.port) in await said(server.node())
    server.known_hosts.write_text(trust)
    assert "pi1: " in await refusal(server.node())


@pytest.mark.parametrize("line", ["/bin/cat {known}", "/usr/bin/env cat {known}", "/bin/sh -c 'cat {known} # %H'"])
async def test_known_hosts_command_is_asked(server: Sshd, home: Path, line: str) -> None:
    command = line.format(known=server.known_hosts)
    write_config(home, server, f"KnownHostsCommand {command}", known=False)
    assert str(server.port) in await said(plain(server))


async def test_a_revoked_host_key_is_refused_though_it_is_known(server: Sshd, home: Path, tmp_path: Path) -> None:
    revoked, list_of_keys, other = tmp_path / "revoked", tmp_path / "krl", new_key(tmp_path / "other")
    revoked.write_text((server.folder / "host_key.pub").read_text())
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", list_of_keys, revoked], check=True)
    for file in (revoked, list_of_keys):
        write_config(home, server, f"RevokedHostKeys {file}")
        assert "revoked" in (await refusal(plain(server))).lower()
    write_config(home, server, f"RevokedHostKeys {other}.pub")
    assert str(server.port) in await said(plain(server))


@pytest.mark.usefixtures("without_ssh")
async def test_without_ssh_the_transport_openssh_is_refused_with_a_remedy(server: Sshd) -> None:
    message = await refusal(server.node(transport="openssh"))
    assert message.endswith("OpenSSH's ssh(1) is not installed here. Install it, or use transport ssh")


# Keys


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("id_ed25519", []),
        ("uk", ["CertificateFile ~/.ssh/uk-cert.pub"]),
        ("uk", ["IdentityFile ~/.ssh/uk", "CertificateFile ~/.ssh/uk-cert.pub", "IdentitiesOnly yes"]),
        ("uk", ["IdentityFile ~/.ssh/uk", "IdentitiesOnly yes"]),
    ],
    ids=["everyday", "the certificate alone", "identities only", "found beside the key"],
)
async def test_a_certificate_in_a_file_is_used_with_its_key_in_the_agent(
    sshd: Start, home: Path, tmp_path: Path, agent: Callable[..., int], name: str, lines: list[str]
) -> None:
    authority, folder = new_key(tmp_path / "ca"), home / ".ssh"
    server = sshd(f"TrustedUserCAKeys {authority}.pub")
    (server.folder / "authorized_keys").unlink()
    key = new_key(folder / name)
    agent(key)  # before the certificate is there: else the agent has both
    certify(authority, folder / f"{name}.pub", "-n", USER)
    key.unlink()
    if name == "id_ed25519":
        shutil.copy(new_key(tmp_path / "locked", passphrase="secret"), key)  # whatever it is, it cannot be opened
    write_config(home, server, *lines, key=False)
    assert str(server.port) in await said(plain(server))


@pytest.mark.parametrize("installed", [True, False], ids=["with ssh", "without ssh"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        "PuTTY-User-Key-File-3: x\n",
    ],
    ids=["empty", "broken", "foreign"],
)
async def test_an_unusable_key_file_in_the_home_folder_loses_no_node_and_is_named(
    server: Sshd,
    home: Path,
    tmp_path: Path,
    agent: Callable[..., int],
    request: pytest.FixtureRequest,
    content: str,
    installed: bool,
) -> None:
    if not installed:
        request.getfixturevalue("without_ssh")
    bad = home / ".ssh/id_ed25519"
    bad.write_text(content)
    bad.chmod(0o600)
    agent(server.key)
    write_config(home, server, key=False)
    assert str(server.port) in await said(plain(server))
    agent("-D")
    agent(new_key(tmp_path / "wrong"))
    assert "Passed over: ~/.ssh/id_ed25519 is not a usable key" in await refusal(plain(server))


async def test_a_key_that_waits_for_a_confirmation_has_time(
    sshd: Start, home: Path, tmp_path: Path, agent: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    agent("-c", server.key)
    write_config(home, server, key=False)
    loop, ahead = asyncio.get_running_loop(), [0.0]
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead[0])
    asked = asyncio.create_task(said(plain(server, patience=1)))
    await eventually_async(lambda: (tmp_path / "asked").exists())
    ahead[0] = 12.0  # seconds after which the user touches the key
    await turns(10)
    assert not asked.done()
    (tmp_path / "go").touch()
    assert str(server.port) in await asked
    assert (tmp_path / "asked").read_text() == "\n"  # asked once


async def test_a_second_factor_is_told_and_the_users_own_master_is_the_way(
    sshd: Start, home: Path, tmp_path: Path, runtime: Path
) -> None:
    server = sshd("AuthenticationMethods publickey,password", "PasswordAuthentication yes")
    for transport in ("ssh", "openssh"):
        message = await refusal(server.node(transport=transport))
        assert "accepts the key, but asks for a second factor" in message
        assert "Log in yourself, with ControlMaster and ControlPath in ~/.ssh/config" in message
    inner = sshd()
    write_config(home, inner, f"ControlPath {tmp_path}/%r-%p")
    words = ["ssh", "-F", str(home / ".ssh/config"), "-M", "-N", "127.0.0.1"]
    with running(words):
        eventually(lambda: (tmp_path / f"{USER}-{inner.port}").exists())
        (inner.folder / "authorized_keys").unlink()  # no further login is possible
        for transport in ("ssh", "openssh"):
            assert str(inner.port) in await said(plain(inner, transport=transport))
    assert not list(runtime.iterdir())
    assert f"refuses to log in {USER}" in await refusal(plain(inner))


PAM = "account requisite pam_echo.so file={folder}/words\naccount requisite pam_deny.so\nauth required pam_permit.so\n"


@pytest.mark.parametrize("installed", [True, False], ids=["with ssh", "without ssh"])
@pytest.mark.parametrize(
    "words",
    [
        "Access denied by pam_slurm_adopt: you have no active jobs on this node",
        "System is booting up. Unprivileged users are not permitted to log in yet.",
        "Your account has expired; please contact your system administrator.",
    ],
    ids=["slurm", "booting", "expired"],
)
async def test_the_words_with_which_a_server_refuses_an_account_are_told(
    sshd: Start, tmp_path: Path, request: pytest.FixtureRequest, words: str, installed: bool
) -> None:
    if not installed:
        request.getfixturevalue("without_ssh")
    (tmp_path / "words").write_text(words)
    refusing = sshd("UsePAM yes", sudoers="\n", pam=PAM.format(folder=tmp_path))
    message = await refusal(refusing.node())
    assert words in message
    assert "Is that an SSH server?" not in message


# Ways


@pytest.mark.parametrize("installed", [True, False], ids=["with ssh", "without ssh"])
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("BindAddress 127.0.0.5", "127.0.0.5"),
        ("AddressFamily inet", "127.0.0.1"),
        ("BindAddress 127.0.0.6", "127.0.0.6"),
    ],
)
async def test_bind_address_and_address_family_have_effect(
    server: Sshd, home: Path, request: pytest.FixtureRequest, line: str, answer: str, installed: bool
) -> None:
    if not installed:
        request.getfixturevalue("without_ssh")
    write_config(home, server, line)
    assert (await said(plain(server))).split()[0] == answer


async def test_an_address_of_the_wrong_family_is_refused(server: Sshd, home: Path) -> None:
    write_config(home, server, "AddressFamily inet6")
    assert "127.0.0.1" in await refusal(plain(server))


@pytest.mark.parametrize("dead", ["silent", "closed", "both"])
async def test_a_name_with_a_dead_address_is_reached_by_its_next_one(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    known = tmp_path / "known"
    known.write_text(server.known_hosts.read_text().replace("127.0.0.1", "localhost"))
    with socket.create_server(("127.0.0.8", server.port), backlog=0) as silent, contextlib.ExitStack() as waiting:
        for _ in range(3):  # fills the queue, so that the kernel drops further packets
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(silent.getsockname())
        addresses = {"silent": ["127.0.0.8"], "closed": ["127.0.0.9"], "both": ["127.0.0.8", "127.0.0.9"]}[dead]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, server.port)) for each in [*addresses, "127.0.0.1"]]

        async def two_addresses(*_: object, **__: object) -> object:
            return found

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two_addresses)
        assert (await said(server.node(address="localhost", known_hosts=known))).split()[2] == "127.0.0.1"
        del found[-1]
        if dead == "closed":
            assert "connection refused by localhost" in await refusal(server.node(address="localhost"))


FDPASS = """import socket, sys, array
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
c = socket.socket(fileno=1)
c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
"""


async def test_a_proxy_command_may_pass_a_socket(server: Sshd, home: Path, tmp_path: Path) -> None:
    (tmp_path / "fdpass.py").write_text(FDPASS)
    command = f"ProxyCommand {sys.executable} {tmp_path}/fdpass.py %h %p"
    write_config(home, server, command, "ProxyUseFdpass yes")
    assert str(server.port) in await said(plain(server))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo >>{starts}; echo no route to the bastion >&2; exit 1'", "no route to the bastion"),
        ("sh -c 'echo >>{starts}; exec /usr/bin/cloudflared-missing access ssh'", "cloudflared-missing"),
        ("sh -c 'echo >>{starts}; echo Log in at https://example.invalid >&2; exit 0'", "Log in at https://example"),
    ],
    ids=["no route", "not installed", "a login"],
)
async def test_a_failed_proxy_command_is_started_once_and_its_words_are_told(
    server: Sshd, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, command: str, words: str
) -> None:
    starts = tmp_path / "starts"
    write_config(home, server, f"ProxyCommand {command.format(starts=starts)}")
    assert words in await refusal(plain(server))
    assert starts.read_text() == "\n"
    assert "Unknown child process" not in caplog.text


async def test_a_windows_node_behind_a_proxy_command_gives_sftp(sshd: Start, home: Path, tmp_path: Path) -> None:
    windows = sshd("VersionAddendum OpenSSH_for_Windows_9.5", "Subsystem sftp internal-sftp")
    command = "ProxyCommand busybox nc %h %p"
    write_config(home, windows, command)
    async with connect_node(plain(windows)) as host, host.files() as files:
        assert host.is_windows
        assert await files.exists(str(windows.folder))
    write_config(home, windows, command, f"RevokedHostKeys {new_key(tmp_path / 'other')}.pub")
    message = await refusal(plain(windows))
    assert (
        "ssh(1) reaches it, but it runs Windows, for which rigctl needs its own SSH client. revokedhostkeys in"
        in message
    )
    assert "it needs transport: ssh" in await refusal(windows.node(transport="openssh"))


async def test_nodes_behind_a_jump_host_share_its_master(sshd: Start, home: Path) -> None:
    gate, inner = gate_and_inner(sshd)
    nodes = [inner.node(f"pi{n}", jump=f"{USER}@127.0.0.1:{gate.port}", transport="openssh") for n in range(6)]
    assert await sessions_at_once(gate, nodes) == {1}
    assert gate.emptied()
    write_config(home, inner, "Host far", "HostName 127.0.0.1", f"ProxyJump {USER}@127.0.0.1:{gate.port}")
    assert str(inner.port) in await said(plain(inner, "far", transport="openssh"))
    (gate.folder / "authorized_keys").unlink()
    message = await refusal(nodes[0])
    assert message.startswith(f"pi0: jump host {USER}@127.0.0.1:{gate.port}: ssh(1) does not reach {USER}@127.0.0.1")


@pytest.mark.parametrize("setting", ["KnownHostsCommand /bin/cat {known}", "ProxyCommand busybox nc %h %p"])
async def test_a_jump_host_that_only_ssh_can_reach_is_reached_by_ssh(sshd: Start, home: Path, setting: str) -> None:
    gate, inner = sshd(), sshd()
    (gate.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    known = home / "known"
    known.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    way = ("HostName 127.0.0.1", f"Port {gate.port}", setting.format(known=known))
    files = f"Host *\n  User {USER}\n  IdentityFile {inner.key}\n"
    only = "" if "Known" in setting else f"  UserKnownHostsFile {known}\n"
    lines = "".join(f"  {line}\n" for line in way)
    (home / ".ssh/config").write_text(
        f"Host gate\n{lines}Host inner\n  HostName 127.0.0.1\n  Port {inner.port}\n"
        f"  UserKnownHostsFile {known}\n{files}{only}"
    )
    assert str(inner.port) in await said(plain(inner, "inner", jump="gate"))


async def test_an_agent_runs_over_ssh_and_ends_with_its_connection(sshd: Start, name: str) -> None:
    server = sshd()
    node = server.node(name, transport="openssh")
    async with connect_node(node) as host, agent_on(host, LockRequest("anna@lab7 pid 4711")) as agent:
        assert (await agent.clock()).node_ns > 0
        assert [holder for _, holder in places(node).values()] == ["anna@lab7 pid 4711"]
        server.cut()
        await eventually_async(lambda: places(node) == {})


async def test_a_client_of_dropbear_called_ssh_is_no_ssh(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").symlink_to(str(shutil.which("dbclient")))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert str(server.port) in await said(server.node())
    assert "ssh(1) is not installed here" in await refusal(server.node(transport="openssh"))


async def test_dropbear_is_reached_by_ssh(tmp_path: Path) -> None:
    with dropbear(tmp_path) as small:
        async with connect_node(small.node(transport="openssh")) as host, host.process("cat") as first:
            assert (await host.run("echo second")).stdout == "second\n"
            first.write(b"third\n")
            assert await first.readline() == b"third\n"


async def test_a_server_with_one_session_per_connection_gets_several_masters(sshd: Start, hanging: Hanging) -> None:
    strict = sshd("MaxSessions 1")
    async with connect_node(strict.node(transport="openssh")) as host, host.process(hanging.command):
        await eventually_async(lambda: hanging.begun)
        assert (await host.run("echo second")).stdout == "second\n"
        assert len(strict.sessions()) >= 2


# Losses and ends


async def test_a_cut_connection_fails_the_command_at_once_with_the_words_of_ssh(sshd: Start, hanging: Hanging) -> None:
    server = sshd()
    async with connect_node(server.node(transport="openssh")) as host:
        work = asyncio.create_task(host.run(hanging.command, deadline_s=3600))
        await eventually_async(lambda: hanging.begun)
        server.cut()
        with pytest.raises(NodeError, match=r"pi1: the SSH connection was lost: .*(closed|Broken pipe|reset)"):
            await work
        with pytest.raises(NodeError, match="pi1: the SSH connection was lost"):
            await host.run("echo")


async def test_silence_is_noticed_by_ssh(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.remote.ssh.KEEPALIVE_S", 0.2)
    server = sshd()
    async with connect_node(server.node(patience=1, transport="openssh")) as host:
        frozen = server.serving()
        signal_all(frozen, signal.SIGSTOP)
        try:
            with pytest.raises(NodeError, match=r"pi1: the SSH connection was lost.*not responding"):
                await host.run("echo", deadline_s=DEADLINE_S)
        finally:
            signal_all(frozen, signal.SIGCONT)


RIG = "nodes:\n  pi1: {{address: 127.0.0.1, {how}}}\n  pi2: {{address: 127.0.0.2, {how}}}\n"


def exec_words(server: Sshd, folder: Path, transport: str, command: str) -> list[str]:
    how = f"port: {server.port}, user: {USER}, key: {server.key}, known_hosts: {server.known_hosts}"
    (folder / "rig.yaml").write_text(RIG.format(how=f"{how}, transport: {transport}"))
    return [sys.executable, "-m", "rigctl", "rig", "exec", str(folder / "rig.yaml"), "pi1", "--", command]


def test_nothing_is_left_when_the_controller_is_killed(
    sshd: Start, tmp_path: Path, runtime: Path, hanging: Hanging
) -> None:
    server = sshd()
    with running(exec_words(server, tmp_path, "openssh", hanging.command), stdin=subprocess.PIPE) as controller:
        eventually(lambda: hanging.begun)
        (folder,) = runtime.glob("rigctl-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert any(str(folder) in words for _, words in all_commands())
        controller.kill()
    eventually(lambda: not folder.exists())
    eventually(lambda: not any(str(folder) in words for _, words in all_commands()))
    assert server.emptied()


@pytest.mark.parametrize("transport", ["ssh", "openssh"])
def test_a_connection_that_is_lost_under_rig_exec_names_the_node(
    sshd: Start, tmp_path: Path, hanging: Hanging, transport: str
) -> None:
    server = sshd()
    words = exec_words(server, tmp_path, transport, hanging.command)
    with running(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
        eventually(lambda: hanging.begun)
        server.cut()
        assert controller.wait(DEADLINE_S) == 3
        assert controller.stderr is not None
        assert "pi1: the SSH connection was lost: " in controller.stderr.read().decode()


async def test_a_long_temporary_folder_and_a_folder_with_blanks_are_no_hindrance(
    sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    odd = tmp_path / '100% of "it"'
    odd.mkdir()
    shutil.copy(server.key, odd / "a key")
    shutil.copy(server.known_hosts, odd / "known hosts")
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", str(long))
    node = server.node(key=odd / "a key", known_hosts=odd / "known hosts", transport="openssh")
    assert str(server.port) in await said(node)
    assert not list(long.iterdir())
