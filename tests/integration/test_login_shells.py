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
        (
            "/usr/sbin/nologin",
            r"This account is currently not available\. \(exit code 1\)\. The user needs a login shell",
        ),
        ("/bin/false", r"exit code 1\. The user needs a login shell"),
        ("/there/is/none", r"(not found|No such file or directory) \(exit code 127\)\. The user needs a login shell"),
    ],
)
async def test_a_login_shell_that_runs_nothing_is_told(sshd: Start, tmp_path: Path, shell: str, said: str) -> None:
    async with connected(sshd(forced(shell, tmp_path / "cache")).node()) as host:
        with pytest.raises(NodeError, match=said):
            await deploy(host)
    assert not (tmp_path / "cache").exists()
