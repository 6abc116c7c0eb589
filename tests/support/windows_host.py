"""A Windows host for tests: an SSH server that behaves as OpenSSH for Windows, and starts programs by Wine.

Its shell is a small cmd.exe or PowerShell. What the tests rely on was read in the sources of OpenSSH for Windows
(contrib/win32/win32compat/w32-doexec.c): cmd gets `cmd.exe /c "LINE"`, the folder is the user's home, and programs
survive the end of their session. Words in the file `traits` of its folder change it: `powershell` is its shell, and its
disk may be `full`, `lying`, or have files put into `quarantine`.
"""

import asyncio
import getpass
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh
from openssh import new_key
from openssh_lab import Lab
from wine import bare_prefix, end_wine, start_services, users_home

VARIABLES = {"PROCESSOR_ARCHITECTURE": "AMD64"}
VERSION = "\r\nMicrosoft Windows [Version 10.0.19045.3803]\r\n"
BANNER = "Loading personal and system profiles took 512ms.\r\n"
UNKNOWN = "'{}' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"


class ParseError(Exception):
    """A line that the shell does not run; the text is what it prints."""


def cmd_parts(line: str) -> list[str]:
    """Return the commands of a line of cmd: it is split at `&` outside quotes, after variables are put in."""
    line = re.sub("%([A-Z_]+)%", lambda match: VARIABLES.get(match[1], match[0]), line)
    return [part.strip() for part in re.findall(r'(?:[^"&]|"[^"]*"?)+', line)]


def without_quotes(line: str) -> str:
    """Return what `cmd /c` runs: the first and the last quote are cut, whatever is between them."""
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line


def powershell_words(line: str) -> Iterator[str]:
    """Yield the words of a command of PowerShell 5. What follows a closing quote is a word of its own."""
    for quoted, bare in re.findall(r'"([^"]*)"|([^\s"]+)', line):
        if re.search(r"[$`]", quoted) or re.search(r"[&|;<>$`'(){}@,]", bare):
            raise ParseError(f"At line:1: {quoted or bare} is not allowed.\r\n")
        yield quoted or bare


class Shell:
    def __init__(self, home: Path, environment: dict[str, str], traits: Path) -> None:
        self._home, self._environment, self._traits = home, environment, traits

    async def serve(self, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        try:
            code = await self._run(process, (process.command or "").strip())
        except ParseError as error:
            process.stderr.write(str(error).encode())
            code = 1
        process.exit(code)

    async def _run(self, process: "asyncssh.SSHServerProcess[bytes]", line: str) -> int:
        if not has_trait(self._traits, "powershell"):
            return await self._cmd(process, without_quotes(f'"{line}"'))
        process.stdout.write(BANNER.encode())
        name, *words = powershell_words(line)
        if name != "cmd":
            raise ParseError(f"{name} : The term '{name}' is not recognized as the name of a cmdlet.\r\n")
        return await self._cmd(process, " ".join([name, *(f'"{word}"' if " " in word else word for word in words)]))

    async def _cmd(self, process: "asyncssh.SSHServerProcess[bytes]", line: str) -> int:
        code = 0
        for part in cmd_parts(line):
            name, _, rest = part.partition(" ")
            if name == "echo":
                process.stdout.write(f"{rest}\r\n".encode())
            elif name == "ver":
                process.stdout.write(VERSION.encode())
            elif name == "cmd" and rest.startswith("/d /c "):
                code = await self._cmd(process, without_quotes(rest.removeprefix("/d /c ")))
            elif (program := self._home / name.replace("\\", "/")).is_file():
                code = await self._start(process, program, rest.split())
            else:
                process.stderr.write(UNKNOWN.format(name).encode())
                code = 1
        return code

    async def _start(self, process: "asyncssh.SSHServerProcess[bytes]", program: Path, words: list[str]) -> int:
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            "wine", str(program), *words, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment, cwd=self._home
        )
        assert child.stdin is not None
        feeding = asyncio.create_task(copy(process.stdin, child.stdin))
        errors = asyncio.create_task(copy(child.stderr, process.stderr))
        await copy(child.stdout, process.stdout)
        code = await child.wait()
        await asyncio.wait({errors}, timeout=0.05)  # Wine's services hold it open for a second
        for task in (feeding, errors):
            task.cancel()
        return code


async def copy(source: Any, sink: Any) -> None:
    """Copy a stream to its end. The sink is closed if it is the input of a program."""
    with suppress(OSError, asyncssh.Error):  # the client has gone, or the program has ended
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    if isinstance(sink, asyncio.StreamWriter):
        sink.close()


class Disk(asyncssh.SFTPServer):
    r"""The user's home folder, C:\Users\NAME."""

    home: Path
    traits: Path

    def map_path(self, path: bytes) -> bytes:
        return os.fsencode(self.home / os.fsdecode(path))

    def realpath(self, path: bytes) -> bytes:
        return f"/C:/users/{getpass.getuser()}".encode() + (b"" if path == b"." else b"/" + path)

    def write(self, file_obj: object, offset: int, data: bytes) -> int:
        if has_trait(self.traits, "full") and offset + len(data) > 20_000:
            raise asyncssh.SFTPFailure("Failure")
        data = data[:-1] + b"?" if has_trait(self.traits, "lying") else data
        return super().write(file_obj, offset, data)  # type: ignore[return-value]

    def close(self, file_obj: object) -> None:
        super().close(file_obj)
        if has_trait(self.traits, "quarantine"):
            Path(os.fsdecode(file_obj.name)).unlink()  # type: ignore[attr-defined]


def has_trait(traits: Path, trait: str) -> bool:
    return traits.exists() and trait in traits.read_text()


def windows_host(folder: Path, key: Path, address: str, port: int = 22) -> list[str]:
    """Return the command of a host with access for `key`. In its folder are its host key and its prefix of Wine."""
    folder.mkdir()
    new_key(folder / "host_key")
    return [sys.executable, __file__, str(folder), f"{key}.pub", address, str(port)]


def serve_windows(lab: Lab, name: str, address: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(lab.inside(name, *windows_host(lab.folder / name, lab.folder / "id", address)))


async def main(folder: Path, key: str, address: str, port: int) -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    environment = bare_prefix(folder / "wine")
    start_services(environment)
    Disk.home, Disk.traits = users_home(folder / "wine"), folder / "traits"
    server = await asyncssh.listen(
        address,
        port,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=key,
        process_factory=Shell(Disk.home, environment, Disk.traits).serve,
        sftp_factory=Disk,
        encoding=None,
        server_version="OpenSSH_for_Windows_9.5",
    )
    await ending.wait()
    server.close()
    end_wine(environment)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
