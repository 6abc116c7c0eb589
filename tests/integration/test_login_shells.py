"""Login shells that are no POSIX shell: their users' nodes are measured; those that run nothing are told of."""

import json
from pathlib import Path

import pytest
from openssh import Start

from rigctl.base.errors import NodeError
from rigctl.probe import facts
from rigctl.remote.deploy import agent_on, deploy
from rigctl.remote.host import connected

pytestmark = pytest.mark.usefixtures("home")


def forced(shell: str, folder: Path) -> str:
    """Return what makes a server run each command in `shell`, as for a user whose login shell it is."""
    return f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"\nSetEnv XDG_CACHE_HOME={folder}'


@pytest.mark.parametrize("shell", ["fish", "tcsh", "busybox sh", "bash"])
async def test_commands_facts_and_agent_work_in_every_login_shell(sshd: Start, tmp_path: Path, shell: str) -> None:
    async with connected(sshd(forced(shell, tmp_path / "cache")).node()) as host:
        said = await host.run("for each in 1 2; do\n  printf '%s\\n' \"it's $each! \\\\\"\ndone; exit 3")
        assert (said.stdout, said.stderr, said.exit_code) == ("it's 1! \\\nit's 2! \\\n", "", 3)
        assert (await host.run("cat\n", input=b"a\x01\x02\n")).output == b"a\x01\x02\n"
        found = facts.parse((await host.run(facts.script("lo", "127.0.0.1"))).stdout)
        assert json.dumps(found) != "{}"
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("/usr/sbin/nologin", r'on it: "This account is currently not available\." \(exit code 1\)'),
        ("/bin/false", r"exit code 1"),
        ("/there/is/none", r"(not found|No such file or directory) \(exit code 127\)"),
    ],
)
async def test_a_login_shell_that_runs_nothing_is_told(sshd: Start, tmp_path: Path, shell: str, said: str) -> None:
    async with connected(sshd(forced(shell, tmp_path / "cache")).node()) as host:
        with pytest.raises(NodeError, match=rf"{said}\. The user needs a login shell"):
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


def greeting(start_up: str, folder: Path) -> str:
    """Return what makes a server run this before each command, as a start-up file does."""
    command = f'{start_up}; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    return f"ForceCommand {command}\nSetEnv XDG_CACHE_HOME={folder}"


@pytest.mark.parametrize("start_up", WELCOME.values(), ids=WELCOME)
async def test_what_a_start_up_file_prints_is_passed_over(sshd: Start, tmp_path: Path, start_up: str) -> None:
    async with connected(sshd(greeting(start_up, tmp_path / "cache")).node()) as host:
        assert (await host.run("cat; exit 3", input=b"a\0\n")).output == b"a\0\n"
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0


async def test_a_start_up_file_that_waits_for_input_is_named_and_gets_none_of_ours(
    sshd: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_up = f"echo Your name?; read name; echo $name >{tmp_path}/eaten"
    async with connected(sshd(greeting(start_up, tmp_path / "cache")).node()) as host:
        monkeypatch.setattr("rigctl.remote.host.BEGIN_DEADLINE_S", 0.5)
        with pytest.raises(NodeError, match=r"did not begin a command within .*Does a start-up file of the user"):
            await host.run("cat", input=b"agent")
    assert "agent" not in ((tmp_path / "eaten").read_text() if (tmp_path / "eaten").exists() else "")


async def test_a_forced_command_that_runs_nothing_of_ours_is_told(sshd: Start) -> None:
    async with connected(sshd("ForceCommand echo this account is for backups").node()) as host:
        with pytest.raises(NodeError, match=r'no command runs on it: "this account is for backups" \(exit code 0\)'):
            await deploy(host)
