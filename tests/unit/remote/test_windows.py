"""What a Windows node answers before its agent is there, and words that cmd and PowerShell leave alone."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote.host import CommandOutput
from rigctl.remote.lock import LockRequest
from rigctl.remote.windows.install import install_by_sftp, quote_word
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


def test_the_holder_of_a_lock_is_one_word_that_no_shell_changes() -> None:
    words = LockRequest('a b"$(x)`%PATH%&c pid 4').words(Node("win", "10.0.0.3", Link(None, None)), quote=quote_word)
    assert words.startswith("--lock node ")
    assert words.endswith("_a_b___x___PATH__c_pid_4 now")
    assert len(words.split()) == 4
