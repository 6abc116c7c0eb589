"""Copies the agent to a Windows node by SFTP, because Windows shells may alter binary standard input.

The agent's path is relative to the user's home folder, in which OpenSSH for Windows starts both commands and SFTP. So
the command that starts the agent has no blank and no quote, which cmd and PowerShell would read differently.
"""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote.build import KERNELS, Binary
from rigctl.remote.host import Host

HELD_S: Final = 60.0
"""Longest time in s for which Microsoft Defender holds a new program back until its cloud has judged the program."""
_FOLDER: Final = "AppData/Local/rigctl"
_DEADLINE_S: Final = 30.0
_MOST_QUOTED: Final = 200
_UPLOADS: Final = re.compile(r"(agent-[0-9a-f]{64}|\.new-[0-9a-f]{16})\.exe")


@dataclass(frozen=True, slots=True)
class WindowsAgent:
    """An agent on a Windows node. The user's home folder is the working folder of `command`, which starts it."""

    path: str  # absolute, with backslashes
    file: str  # for SFTP: relative to the home folder, with slashes
    command: str


async def install_by_sftp(host: Host, binaries: Mapping[str, Binary]) -> WindowsAgent:
    """Return the agent on the node; upload it if missing or wrong. Raise `NodeError` with cause and remedy."""
    if host.node.sudo:
        raise NodeError(host.node.name, "it runs Windows, which has no sudo: leave `sudo: true` out of the rig file")
    binary = _choose(host, binaries, (await host.run("ver&echo %PROCESSOR_ARCHITECTURE%")).stdout)
    data = await asyncio.to_thread(binary.path.read_bytes)
    file = f"{_FOLDER}/agent-{binary.sha256}.exe"
    async with _failures(host), asyncio.timeout(_DEADLINE_S * host.node.patience), host.files() as files:
        home = printable(str(await files.realpath(".")))[:_MOST_QUOTED]
        path = f"{home.lstrip('/')}/{file}".replace("/", "\\")
        if await _content(files, file, len(data)) != data:
            await _upload(host, files, file, data, path)
    return WindowsAgent(path, file, file.replace("/", "\\"))


async def explain_end(host: Host, agent: WindowsAgent) -> str:
    """Return a sentence for the user if the file of an agent that has ended is gone, else ""."""
    with suppress(NodeError, OSError, asyncssh.Error):
        async with asyncio.timeout(2), host.files() as files:
            if not await files.exists(agent.file):
                return f". {_missing_file_text(agent.path)}"
    return ""


def quote_word(text: str) -> str:
    """Return `text` as a word that neither cmd nor PowerShell changes: other characters become `_`."""
    return re.sub(r"[^A-Za-z0-9@.:_-]", "_", text)


def _missing_file_text(path: str) -> str:
    folder = path.rpartition("\\")[0].replace("'", "''")  # a quote within a text of PowerShell is written twice
    return (
        f"Its file {path} is gone: an antivirus has probably quarantined it. Restore it there, or exclude "
        f"its folder, in PowerShell as administrator: Add-MpPreference -ExclusionPath '{folder}'"
    )


def _choose(host: Host, binaries: Mapping[str, Binary], said: str) -> Binary:
    """Return the binary for a node that says `Microsoft Windows [Version 10.0.19045.1]` and `AMD64`."""
    lines = [printable(line.strip())[:_MOST_QUOTED] for line in said.splitlines() if line.strip()]
    if len(lines) < 2 or "Windows" not in lines[-2]:
        what = f"cmd did not tell the type of the machine: {' / '.join(lines) or 'it printed nothing'}"
        raise NodeError(host.node.name, f"{what}. The user needs cmd or PowerShell as login shell (DefaultShell)")
    machine = KERNELS.get(f"Windows {lines[-1]}")
    if machine is None:
        raise NodeError(host.node.name, f"there is no agent for Windows on {lines[-1]}, only for AMD64 and ARM64")
    if machine not in binaries:
        raise NodeError(host.node.name, f"the agent for {machine} is not built: rigctl agent build --target {machine}")
    return binaries[machine]


async def _content(files: asyncssh.SFTPClient, file: str, size: int) -> bytes | None:
    """Return the first bytes of a file, one more than `size` at most; None if there is no file."""
    try:
        async with files.open(file, "rb") as opened:
            content: bytes = await opened.read(size + 1)
            return content
    except asyncssh.SFTPNoSuchFile:
        return None


async def _upload(host: Host, files: asyncssh.SFTPClient, file: str, data: bytes, path: str) -> None:
    """Write the agent under a random name, compare what was written, and rename the file."""
    fresh = f"{_FOLDER}/.new-{secrets.token_hex(8)}.exe"
    await files.makedirs(_FOLDER, exist_ok=True)
    try:
        async with files.open(fresh, "wb") as opened:
            await opened.write(data)
        held = await _content(files, fresh, len(data))
        if held is None:
            raise NodeError(host.node.name, _missing_file_text(path))
        if held != data:
            wrong = f"{len(held)} bytes instead of {len(data)}" if len(held) != len(data) else "other bytes"
            what = f"the agent was not copied correctly to {path}: {wrong} were read back"
            hint = "Is its disk sound, and does no program change what is written there?"
            raise NodeError(host.node.name, f"{what}. {hint}")
        with suppress(asyncssh.SFTPError):
            await files.remove(file)
        try:
            await files.rename(fresh, file)
        except asyncssh.SFTPError:
            if await _content(files, file, len(data)) != data:  # otherwise another run has put the same agent there
                raise
    finally:
        with suppress(OSError, asyncssh.Error):
            await files.remove(fresh)
    await _remove_old(files, file)


async def _remove_old(files: asyncssh.SFTPClient, file: str) -> None:
    """Remove agents and incomplete uploads that are older than a week; Windows keeps a running program."""
    with suppress(OSError, asyncssh.Error):
        for each in await files.readdir(_FOLDER):
            name, age_s = str(each.filename), time.time() - (each.attrs.mtime or time.time())
            if _UPLOADS.fullmatch(name) and age_s > 7 * 86400 and not file.endswith(name):
                with suppress(asyncssh.SFTPError):
                    await files.remove(f"{_FOLDER}/{name}")


@asynccontextmanager
async def _failures(host: Host) -> AsyncIterator[None]:
    """Turn errors of SFTP into a `NodeError` with a remedy. Windows reports a full disk without a reason."""
    where = "could not put the agent into %LOCALAPPDATA%\\rigctl"
    try:
        yield
    except TimeoutError:
        raise NodeError(host.node.name, f"{where} within {_DEADLINE_S * host.node.patience:g} s") from None
    except asyncssh.SFTPError as error:
        reason = printable(str(error.reason))[:_MOST_QUOTED] or type(error).__name__
        what = f"{where}: {reason}. Is its disk full? Does an antivirus hold the file? May the user write there?"
        raise NodeError(host.node.name, what) from None
    except (OSError, asyncssh.Error) as error:
        raise NodeError(host.node.name, f"the SSH connection was lost: {printable(str(error))}") from None
