"""Starts and ends the process that holds a virtual rig: the controller's side of `rigctl.virtual.holder`."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from rigctl.base.errors import RigError
from rigctl.base.processes import process
from rigctl.virtual.layout import STAY, Layout
from rigctl.virtual.machines.qemu import prepared
from rigctl.virtual.state import State, kill_commands, new_folder, remove

START_DEADLINE_S: Final = 20.0
BOOT_DEADLINE_S: Final = 300.0
"""For a rig of machines: emulated ones boot slowly."""
END_DEADLINE_S: Final = 5.0
"""Commands get 3 s to end (`children.KILL_AFTER_S`). Then the holder is killed, and the kernel ends the rest."""
_SBIN: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # an ordinary user's PATH may lack them; ip and tc live there
_LOOPBACK_HINT: Final = "Use the loopback rig instead, which needs neither but has no links: --rig loopback"
_TOOLS: Final = {"unshare": "util-linux", "mount": "mount", "ip": "iproute2", "tc": "iproute2"}
_HOLDERS: Final = {
    "namespaces": "rigctl.virtual.holder",
    "loopback": "rigctl.virtual.holder",
    "machines": "rigctl.virtual.machines.holder",
}
_OWN: Final = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_PACKAGES: Final = Path(__file__).parents[2]  # the working folder may be where it is, and -P leaves that out
_POLL_S: Final = 0.01


class _NoNamespacesError(RigError):
    """`unshare` was refused. Another way to start may be allowed."""


@dataclass(frozen=True, slots=True)
class Started:
    """A rig that this process started, and the pipe that ends it."""

    state: State
    lifeline: IO[bytes]

    def let_go(self) -> None:
        """Close the pipe. A rig that is to stay gets a message first, any other ends.

        The message goes out only now, when the state is written: a controller that is killed before leaves no rig
        that cannot be found.
        """
        if self.state.stays:
            self.lifeline.write(STAY)
        self.lifeline.close()


async def start(layout: Layout, *, source: Path | None, stay: bool) -> Started:
    """Start a rig and wait until all its nodes answer. Raise `RigError` with the reason if it cannot be started."""
    refusals: list[str] = []
    more = await asyncio.to_thread(prepared, layout) if layout.kind == "machines" else {}
    for wrapper in _wrappers(layout):
        folder = new_folder(layout.key)
        try:
            return await _start(layout, wrapper, folder, more, source=source, stay=stay)
        except _NoNamespacesError as refused:
            remove(folder)
            refusals.append(str(refused))
        except BaseException:
            remove(folder)
            raise
    raise RigError(
        f"{layout.name}: network namespaces are allowed on this machine neither as root nor in a user namespace"
        f" ({'; '.join(refusals)}). {_LOOPBACK_HINT}"
    )


async def end(state: State) -> None:
    """End a rig: its commands get end-of-file, then time, then SIGKILL. Wait until it is gone."""
    if state.holder.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.holder.pid, signal.SIGTERM)
    await ended(state)


async def ended(state: State) -> None:
    """Wait until a rig that was told to end has ended, kill it if it does not, and remove its folder."""
    if not await _gone(state, END_DEADLINE_S):
        for part in (state.starter, state.holder):
            if part.alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(part.pid, signal.SIGKILL)
        if not await _gone(state, END_DEADLINE_S):
            raise RigError(f"{state.name}: process {state.holder.pid} does not end. End it: kill -9 {state.holder.pid}")
    _reap(state.starter.pid)
    kill_commands(state.folder.name)
    remove(state.folder)


def _reap(pid: int) -> None:
    """Take the exit status of a process that has ended, if it was a child of ours."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


async def _gone(state: State, within_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            # Polled: after `rig up` they are not our children.
            while state.starter.alive or state.holder.alive:
                await asyncio.sleep(_POLL_S)
            return True
    return False


def _wrappers(layout: Layout) -> Iterator[list[str]]:
    """Yield the words before the holder's command, best first: namespaces as root, or in an own user namespace."""
    if layout.kind != "namespaces":
        yield []
        return
    path = _path()
    missing = {tool: package for tool, package in _TOOLS.items() if shutil.which(tool, path=path) is None}
    if missing:
        packages = ", ".join(sorted(set(missing.values())))
        raise RigError(f"{layout.name}: a virtual rig needs {', '.join(missing)}. Install {packages}. {_LOOPBACK_HINT}")
    unshare = str(shutil.which("unshare", path=path))
    if os.geteuid() == 0:
        yield [unshare, *_OWN]
    yield [unshare, "--user", "--map-root-user", *_OWN]


async def _start(
    layout: Layout, wrapper: list[str], folder: Path, more: dict[str, Any], *, source: Path | None, stay: bool
) -> Started:
    with contextlib.ExitStack() as ours:
        listening = layout.places if layout.kind != "machines" else ()  # of machines, QEMU listens
        sockets = {place.name: ours.enter_context(_bound(layout.ssh_address(place))) for place in listening}
        snmp = ours.enter_context(_bound("127.0.0.1", socket.SOCK_DGRAM)) if _serves_snmp(layout) else None
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        ours.callback(os.close, proc)
        orders = {
            "layout": json.loads(layout.to_json()),
            "sockets": {name: sock.fileno() for name, sock in sockets.items()},
            "snmp": snmp.fileno() if snmp else None,
            "proc": proc,
            "homes": str(folder / "home"),
            **more,
        }
        passed = [proc, *(sock.fileno() for sock in (*sockets.values(), *([snmp] if snmp else [])))]
        holder = _spawn(wrapper, folder, passed, _HOLDERS[layout.kind])
        assert holder.stdin is not None
        assert holder.stdout is not None
        ours.enter_context(holder.stdout)
        deadline_s = BOOT_DEADLINE_S if layout.kind == "machines" else START_DEADLINE_S
        try:
            holder.stdin.write(json.dumps(orders).encode() + b"\n")
            answer = await _answer(holder.stdout, deadline_s)
            if "error" in answer:
                hint = f"\n{_LOOPBACK_HINT}" if layout.kind == "namespaces" else ""
                raise RigError(f"{layout.name}: {answer['error']}{hint}")
            ports = {name: sock.getsockname()[1] for name, sock in sockets.items()} | answer.get("ports", {})
            snmp_port = snmp.getsockname()[1] if snmp and answer["community"] else None
            state = _state(layout, answer, holder.pid, folder, ports, snmp_port, source=source, stay=stay)
            holder.returncode = 0  # it outlives this process, or is reaped by `ended`
            return Started(state, holder.stdin)
        except BaseException as error:
            _abandon(holder)
            if isinstance(error, EOFError | TimeoutError | BrokenPipeError):
                raise _failure(layout, folder, wrapper, error, deadline_s) from None
            raise


def _serves_snmp(layout: Layout) -> bool:
    """Tell whether the rig's switches are to answer SNMP and this machine has snmpd. Without it, all else works."""
    return layout.snmp and layout.kind == "namespaces" and shutil.which("snmpd", path=_path()) is not None


def _bound(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Return a socket in *our* network namespace. The holder, in its own, listens on it."""
    sock = socket.socket(socket.AF_INET, kind)
    sock.bind((address, 0))
    return sock


def _spawn(wrapper: list[str], folder: Path, passed: list[int], holder: str) -> "subprocess.Popen[bytes]":
    """Start the holder. It inherits the descriptors in `passed` and no other: a rig would hold a lock or a pipe."""
    with (folder / "log").open("ab") as log:
        os.fchmod(log.fileno(), 0o600)
        return subprocess.Popen(
            # -P: no module may come from the working folder. Ours come from where this process has them.
            [*wrapper, sys.executable, "-P", "-m", holder, folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            pass_fds=passed,
            env={
                "PATH": _path(),
                "PYTHONPATH": os.pathsep.join([str(_PACKAGES), *(entry for entry in sys.path if entry)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "LANG": "C.UTF-8",
            },
            start_new_session=True,  # Ctrl-C is for the controller, which ends the rig in order
        )


async def _answer(pipe: IO[bytes], deadline_s: float) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(pipe, ready.set)
    text = b""
    try:
        async with asyncio.timeout(deadline_s):
            while not text.endswith(b"\n"):
                await ready.wait()
                ready.clear()
                data = pipe.read(65536)
                if not data:
                    raise EOFError
                text += data
    finally:
        loop.remove_reader(pipe)
    answer: dict[str, Any] = json.loads(text)
    return answer


def _state(
    layout: Layout,
    answer: dict[str, Any],
    pid: int,
    folder: Path,
    ports: dict[str, int],
    snmp_port: int | None,
    *,
    source: Path | None,
    stay: bool,
) -> State:
    holder, starter = process(answer["pid"]), process(pid)
    if holder is None or starter is None:
        raise EOFError
    state = State(
        folder,
        layout.name,
        layout.key,
        str(source) if source else None,
        holder,
        starter,
        ports,
        stay,
        snmp_port,
        answer["community"],
    )
    state.client_key.touch(mode=0o600)
    state.client_key.write_text(answer["client_key"])
    state.known_hosts.write_text(
        "".join(f"[{layout.ssh_address(place)}]:{ports[place.name]} {answer['host_key']}\n" for place in layout.places)
    )
    state.write()
    return state


def _abandon(holder: "subprocess.Popen[bytes]") -> None:
    """Kill the processes of a failed start, and wait until all of them have ended.

    The process may be `unshare`; the kernel kills the holder after it. The last process to end closes the pipe on
    which both answer.
    """
    holder.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        holder.communicate(timeout=END_DEADLINE_S)


def _failure(layout: Layout, folder: Path, wrapper: list[str], error: BaseException, deadline_s: float) -> RigError:
    log = (folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
    text = " / ".join(log)
    if wrapper and any(line.startswith("unshare: ") for line in log):
        return _NoNamespacesError(f"{'in a user namespace' if '--user' in wrapper else 'as root'}: {text}")
    if isinstance(error, TimeoutError):
        return RigError(f"{layout.name}: the virtual rig was not up within {deadline_s:g} s. {text}".strip())
    return RigError(f"{layout.name}: the virtual rig ended while it started: {text or 'no output'}")


def _path() -> str:
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    return ":".join([*path, *(folder for folder in _SBIN if folder not in path)])
