"""`sudo: true`: the agent as root by real sudo, for a user that a real sshd lets in."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from openssh import GUEST, Start
from processes import eventually_async, program
from user import User

from rigctl.base.errors import NodeError
from rigctl.remote.deploy import agent_on, deploy
from rigctl.remote.host import connect_node

LETS = f"root ALL=(ALL) ALL\n{GUEST} ALL=(root) NOPASSWD: ALL\n"
ASKS = f"root ALL=(ALL) ALL\n{GUEST} ALL=(root) ALL\n"
KNOWS_NOT = "root ALL=(ALL) ALL\n"
SETTING = "net.ipv4.tcp_fin_timeout"


def _can_be_tried() -> bool:
    if os.geteuid() != 0 or shutil.which("sudo") is None or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "--mount", "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return tried.returncode == 0


pytestmark = [
    pytest.mark.usefixtures("home"),
    pytest.mark.skipif(not _can_be_tried(), reason="takes root, sudo and mount namespaces"),
]


def status(pid: int, line: str) -> list[str]:
    texts = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(text.split()[1:] for text in texts if text.startswith(line))


async def test_the_agent_runs_as_root_out_of_roots_folder_which_the_user_cannot_change(sshd: Start) -> None:
    server = sshd(sudoers=LETS)
    async with connect_node(server.node()) as host, agent_on(host) as agent:
        assert status(agent.hello.pid, "Uid:") == ["47110"] * 4
    async with connect_node(server.node(sudo=True)) as host:
        async with agent_on(host) as agent:
            assert status(agent.hello.pid, "Uid:") == ["0"] * 4
            pid = agent.hello.pid
        folder = server.inside("/var/lib/rigctl")
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (0, 0o700)
        (binary,) = folder.iterdir()
        assert (binary.stat().st_uid, binary.stat().st_mode & 0o777) == (0, 0o700)
        await eventually_async(lambda: not Path(f"/proc/{pid}").exists())
        inode = binary.stat().st_ino
        async with agent_on(host):
            assert binary.stat().st_ino == inode, "it was there: nothing was written"
        path = f"/var/lib/rigctl/{binary.name}"
        for attack in (f"echo x >{path}", f"rm -f {path}", "touch /var/lib/rigctl/settings-1", "ls /var/lib/rigctl"):
            assert (await host.run(f"sh -c '{attack}'")).exit_code != 0, attack


async def test_a_folder_that_another_user_made_is_passed_over(sshd: Start) -> None:
    server = sshd(sudoers=LETS)
    server.inside("/var/lib/rigctl").mkdir(mode=0o777)
    os.chown(server.inside("/var/lib/rigctl"), 47110, 47110)
    async with connect_node(server.node(sudo=True)) as host, agent_on(host) as agent:
        assert str(Path(f"/proc/{agent.hello.pid}/exe").readlink()).startswith("/run/rigctl/agent-")
        assert "/var/lib/rigctl can't be used (it is not ours)" in (agent.note or "")
    await eventually_async(lambda: not server.inside("/run/rigctl").exists(), "a borrowed folder is left as it was")


async def test_a_shared_folder_where_others_may_replace_the_agent_is_passed_over(sshd: Start) -> None:
    server = sshd('SetEnv "XDG_CACHE_HOME=/mnt" "TMPDIR=/mnt/spare"', sudoers=LETS)
    spare = server.inside("/mnt/spare")
    spare.mkdir()
    for mode, parent in ((0o777, "/var/tmp"), (0o1777, "/mnt/spare")):  # without and with the sticky bit
        spare.chmod(mode)
        async with connect_node(server.node()) as host, agent_on(host) as agent:
            running = Path(f"/proc/{agent.hello.pid}/exe").readlink()
            assert running.parent == Path(f"{parent}/rigctl-47110")
            assert [path.name for path in spare.iterdir()] == ["rigctl-47110"] * (mode == 0o1777)
        folder = server.inside(f"{parent}/rigctl-47110")
        await eventually_async(partial(lambda folder: not folder.exists(), folder))


@pytest.mark.parametrize(("rules", "meant"), [(ASKS, "asks for a password"), (KNOWS_NOT, "(asks for a|does not know)")])
async def test_a_sudo_that_asks_is_told_with_what_to_do(sshd: Start, rules: str, meant: str) -> None:
    async with connect_node(sshd(sudoers=rules).node(sudo=True)) as host:
        advice = rf"echo '{GUEST} ALL=\(root\) NOPASSWD: ALL' >>/etc/sudoers.d/rigctl"
        with pytest.raises(NodeError, match=rf"^pi1: sudo {meant}.*{advice}, or leave `sudo: true` out of node pi1"):
            await deploy(host)


@pytest.mark.parametrize("who", ["", f":{GUEST}"])
async def test_a_sudo_that_wants_a_terminal_is_told_with_the_line_that_helps(sshd: Start, who: str) -> None:
    defaults = f"Defaults{who} requiretty\n"
    async with connect_node(sshd(sudoers=defaults + LETS).node(sudo=True)) as host:
        advice = rf"echo 'Defaults:{GUEST} !requiretty' >>/etc/sudoers.d/rigctl"
        with pytest.raises(NodeError, match=rf"^pi1: sudo wants a terminal.*{advice}, or leave"):
            await deploy(host)
    helped = f"{defaults}{LETS}Defaults:{GUEST} !requiretty\n"
    async with connect_node(sshd(sudoers=helped).node(sudo=True)) as host, agent_on(host) as agent:
        assert status(agent.hello.pid, "Uid:") == ["0"] * 4


SUDO_RS = "sudo-rs: interactive authentication is required"
SLOW = "sudo: unable to resolve host pi1: Temporary failure in name resolution"


@pytest.mark.parametrize(
    ("sudo", "told"),
    [
        (f"echo '{SUDO_RS}' >&2; exit 1", "^pi1: sudo asks for a password"),
        ("echo \"sudo-rs: I'm sorry u. I'm afraid I can't do that\" >&2; exit 1", "sudo does not let rigguest run"),
        ("echo 'sudo: unknown uid 47110' >&2; exit 1", r"sudo runs no shell as root: sudo: unknown uid 47110 \(exit"),
    ],
)
async def test_another_sudo_is_told_by_its_own_words(sshd: Start, sudo: str, told: str) -> None:
    server = sshd('SetEnv "PATH=/mnt/tools:/usr/bin:/bin"', sudoers=LETS)
    server.inside("/mnt/tools").mkdir()
    program(server.inside("/mnt/tools/sudo"), sudo)
    async with connect_node(server.node(sudo=True)) as host:
        with pytest.raises(NodeError, match=told):
            await deploy(host)


async def test_a_sudo_that_first_warns_of_the_hosts_name_works(sshd: Start) -> None:
    server = sshd('SetEnv "PATH=/mnt/tools:/usr/bin:/bin"', sudoers=LETS)
    server.inside("/mnt/tools").mkdir()
    program(server.inside("/mnt/tools/sudo"), f"echo '{SLOW}' >&2; exec /usr/bin/sudo \"$@\"")
    async with connect_node(server.node(sudo=True)) as host, agent_on(host) as agent:
        assert status(agent.hello.pid, "Uid:") == ["0"] * 4


async def test_a_node_without_sudo_is_told(sshd: Start) -> None:
    path = "/mnt/tools"
    server = sshd(f'SetEnv "PATH={path}"', sudoers=LETS)
    server.inside(path).mkdir()
    for tool in ("sh", "id", "tr"):
        server.inside(f"{path}/{tool}").symlink_to(shutil.which(tool) or "")
    async with connect_node(server.node(sudo=True)) as host:
        with pytest.raises(NodeError, match="pi1: sudo is not installed there"):
            await deploy(host)


async def test_root_needs_no_sudo(sshd: Start) -> None:
    server = sshd(sudoers=KNOWS_NOT.replace("root", "nobody"))
    server.user = "root"
    os.chown(server.inside("/mnt/rigguest/authorized_keys"), 0, 0)
    async with connect_node(server.node(sudo=True)) as host, agent_on(host) as agent:
        assert status(agent.hello.pid, "Uid:") == ["0"] * 4


def test_a_run_changes_settings_and_captures_on_nodes_with_sudo(sshd: Start, tmp_path: Path) -> None:
    servers = {"a": sshd(sudoers=LETS), "b": sshd(sudoers=LETS)}
    before = Path(f"/proc/sys/{SETTING.replace('.', '/')}").read_text().strip()
    nodes = "".join(
        f"  {name}: {{address: 127.0.0.1, port: {server.port}, user: {GUEST}, key: {server.key}, sudo: true, "
        f"known_hosts: {server.known_hosts}, data_address: 127.0.0.1, data_interface: lo}}\n"
        for name, server in servers.items()
    )
    (tmp_path / "lab.yaml").write_text(f"switch: none\nlinks: {{rate: 10G, mtu: 65536}}\nnodes:\n{nodes}")
    user = User(tmp_path)
    user.scenario(
        "rig: lab.yaml\npairs: [a -> b]\nduration: 500ms\nmax_skew: 1s\ncapture: true\n"
        f"conditions: {{same: {{sysctl: {{{SETTING}: {before}}}}}}}\nmatrix: {{window: [16K]}}\n"
    )
    user.rigctl("run", "s.yaml")
    assert {row["status"] for row in user.rows()} == {"ok"}
    assert len(list(tmp_path.rglob("*.pcap"))) == 2
    for server in servers.values():
        (left,) = server.inside("/var/lib/rigctl").iterdir()
        assert left.name.startswith("agent-"), "its journal is gone"
