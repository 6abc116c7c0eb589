"""What a Windows node answers before its agent is there, and words that cmd and PowerShell leave alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote.build import Binary
from rigctl.remote.host import CommandOutput
from rigctl.remote.lock import LockRequest
from rigctl.remote.windows.install import explain_end, install_by_sftp, quote_word
from rigctl.rig.inventory import Node

VERSION = b"\r\nMicrosoft Windows [Versi\xa2n 10.0.19045.3803]\r\n"
ANSWERS = {
    VERSION + b"x86\r\n": "there is no agent for Windows on x86",
    b"sh: ver: not found\n": "cmd did not tell the type of the machine: sh: ver: not found.*DefaultShell",
    b"": "it printed nothing",
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_node_without_an_agent_of_its_type_is_refused_with_what_to_do(answer: bytes) -> None:
    host: Any = SimpleNamespace(node=Node("win", "10.0.0.3", Link(None, None)))
    host.run = AsyncMock(return_value=CommandOutput(0, answer, b""))
    with pytest.raises(NodeError, match=ANSWERS[answer]):
        await install_by_sftp(host, {})
    host.run.assert_awaited_once_with("ver&echo %PROCESSOR_ARCHITECTURE%")


class Home:
    """The files of a user's home folder, with the agent in it unless `gone`."""

    def __init__(self, folder: str, agent: bytes) -> None:
        self.realpath = AsyncMock(return_value=folder)
        self.exists = AsyncMock(return_value=False)
        self._agent = agent

    @asynccontextmanager
    async def open(self, file: str, mode: str) -> AsyncIterator[Any]:
        assert (file.partition("/")[0], mode) == ("AppData", "rb")
        yield SimpleNamespace(read=AsyncMock(return_value=self._agent))


@pytest.mark.parametrize(
    ("folder", "path", "quoted"),
    [
        ("/C:/Users/John Doe", "C:\\Users\\John Doe", "C:\\Users\\John Doe"),
        ("/C:/Users/J\u00fcrgen", "C:\\Users\\J\u00fcrgen", "C:\\Users\\J\u00fcrgen"),
        ("/D:/Users/O'Brien", "D:\\Users\\O'Brien", "D:\\Users\\O''Brien"),
    ],
)
async def test_the_agent_starts_in_any_users_home_and_messages_quote_it(
    tmp_path: Path, folder: str, path: str, quoted: str
) -> None:
    program = tmp_path / "agent.exe"
    program.write_bytes(b"MZ")
    binary = Binary("windows-x86_64", program, 2, "a" * 64)
    host: Any = SimpleNamespace(node=Node("win", "10.0.0.3", Link(None, None)))
    host.run = AsyncMock(return_value=CommandOutput(0, VERSION + b"AMD64\r\n", b""))
    host.files = lambda: nullcontext(Home(folder, b"MZ"))
    agent = await install_by_sftp(host, {"windows-x86_64": binary})
    assert agent.path == f"{path}\\AppData\\Local\\rigctl\\agent-{'a' * 64}.exe"
    assert agent.command.isascii()
    assert " " not in agent.command
    assert f"-ExclusionPath '{quoted}\\AppData\\Local\\rigctl'" in await explain_end(host, agent)


def test_the_holder_of_a_lock_is_one_word_that_no_shell_changes() -> None:
    words = LockRequest('a b"$(x)`%PATH%&c pid 4').words(Node("win", "10.0.0.3", Link(None, None)), quote=quote_word)
    assert words.startswith("--lock node ")
    assert words.endswith("_a_b___x___PATH__c_pid_4 now")
    assert len(words.split()) == 4
