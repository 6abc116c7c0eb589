"""Starts and ends the process that holds a virtual rig. The controller's side of `rigctl.virtual.holder`."""

import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import RigError
from rigctl.base.processes import process
from rigctl.virtual.layout import STAY, Layout
from rigctl.virtual.leftovers import kill_commands
from rigctl.virtual.state import State, new_folder, remove

START_DEADLINE_S: Final = 20.0
BOOT_DEADLINE_S: Final = 300.0
"""Of a rig of machines: emulated ones boot slowly."""
END_DEADLINE_S: Final = 5.0
"""Commands are given 3 s to end (`children.KILL_AFTER_S`); then the holder is killed and the kernel does the rest."""
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
_POLL_S: Final = 0.005


class _NoNamespacesError(RigError):
    """`unshare` was refused; another way may not be."""


class Started:
    """A rig that this process started, and the pipe that ends it."""

    def __init__(self, state: State, lifeline: int) -> None:
        self.state = state
        self._lifeline = lifeline

    def let_go(self) -> None:
        """Close the pipe: a rig that is to stay gets a message first, any other ends.

        Only now, when its state is written: a controller killed before leaves no rig that nobody can find.
        """
        if self.state.stays:
            os.write(self._lifeline, STAY)
        os.close(self._lifeline)


async def start(layout: Layout, *, source: Path | None, stay: bool) -> Started:
    """Start a rig and wait until all its nodes answer. Raises `RigError` where it cannot be, with what was said."""
    refusals: list[str] = []
    more: dict[str, Any] = {}
    if layout.kind == "machines":
        from rigctl.virtual.machines.prepare import prepared

        more = await asyncio.to_thread(prepared, layout)
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
    """End a rig: commands get end-of-file, then time, then SIGKILL. Waits until it is gone."""
    if state.holder.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.holder.pid, signal.SIGTERM)
    await ended(state)


async def ended(state: State) -> None:
    """Wait until a rig that was told to end has ended, kill it where it does not, and remove its folder."""
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
    """Take the exit status of a process that has ended, where it was ours."""
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
    """What to put before the holder, best first: namespaces as root, or in a user namespace of one's own."""
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
        listening = layout.places if layout.kind != "machines" else ()  # there QEMU listens
        sockets = {place.name: _bound(layout.ssh_address(place)) for place in listening}
        for sock in sockets.values():
            ours.enter_context(sock)
        ports = {name: sock.getsockname()[1] for name, sock in sockets.items()}
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
        snmp_port = snmp.getsockname()[1] if snmp else None
        pid, lifeline, answers = _spawn(wrapper, folder, passed, _HOLDERS[layout.kind])
        ours.callback(os.close, answers)
        try:
            os.write(lifeline, json.dumps(orders).encode() + b"\n")
            answer = _checked(layout, await _answer(answers, _deadline_s(layout)))
            ports |= answer.get("ports", {})
            kept = _kept(layout, answer, pid, folder, ports, snmp_port=snmp_port, source=source, stay=stay)
            return Started(kept, lifeline)
        except BaseException as error:
            os.close(lifeline)
            _abandon(pid, answers)
            if isinstance(error, EOFError | TimeoutError | BrokenPipeError):
                raise _failure(layout, folder, wrapper, error) from None
            raise


def _serves_snmp(layout: Layout) -> bool:
    """Whether the rig's switches are to answer SNMP and this machine has what answers. Without, all else works."""
    return layout.snmp and layout.kind == "namespaces" and shutil.which("snmpd", path=_path()) is not None


def _bound(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A socket in *our* network namespace; the holder, in its own, listens on it."""
    made = socket.socket(socket.AF_INET, kind)
    made.bind((address, 0))
    return made


def _spawn(wrapper: list[str], folder: Path, passed: list[int], holder: str) -> tuple[int, int, int]:
    """Start the holder; its process id, the pipe to it, the pipe from it."""
    orders_end, lifeline = os.pipe()
    answers, answers_end = os.pipe()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _keep_inherited()
    try:
        # -P: no module may come from the working folder. Ours come from where this process has them.
        command = [*wrapper, sys.executable, "-P", "-m", holder, folder.name]
        pid = os.posix_spawn(
            command[0],
            command,
            {
                "PATH": _path(),
                "PYTHONPATH": os.pathsep.join([str(_PACKAGES), *(entry for entry in sys.path if entry)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "LANG": "C.UTF-8",
            },
            file_actions=[
                (os.POSIX_SPAWN_DUP2, orders_end, 0),
                (os.POSIX_SPAWN_DUP2, answers_end, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                *((os.POSIX_SPAWN_DUP2, number, number) for number in passed),
            ],
            setsid=True,  # Ctrl-C is for the controller, which ends the rig in order
        )
    except BaseException:
        os.close(lifeline)
        os.close(answers)
        raise
    finally:
        for descriptor in (orders_end, answers_end, log):
            os.close(descriptor)
    return pid, lifeline, answers


def _deadline_s(layout: Layout) -> float:
    return BOOT_DEADLINE_S if layout.kind == "machines" else START_DEADLINE_S


def _keep_inherited() -> None:
    """Pass on no descriptor that this process was given by whoever started it: a rig would hold a lock or a pipe.

    Not by closing them in the new process: posix_spawn(3) refuses to close a number above the limit of open files.
    """
    for entry in list(Path("/proc/self/fd").iterdir()):
        if (number := int(entry.name)) > 2:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself, closed by now
                os.set_inheritable(number, False)


async def _answer(descriptor: int, deadline_s: float) -> dict[str, Any]:
    """The holder's one line. Raises `EOFError`, `TimeoutError`."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    text = b""
    try:
        async with asyncio.timeout(deadline_s):
            while not text.endswith(b"\n"):
                await ready.wait()
                ready.clear()
                data = os.read(descriptor, 65536)
                if not data:
                    raise EOFError
                text += data
    finally:
        loop.remove_reader(descriptor)
    answer: dict[str, Any] = json.loads(text)
    return answer


def _checked(layout: Layout, answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        hint = f"\n{_LOOPBACK_HINT}" if layout.kind == "namespaces" else ""
        raise RigError(f"{layout.name}: {answer['error']}{hint}")
    return answer


def _kept(
    layout: Layout,
    answer: dict[str, Any],
    pid: int,
    folder: Path,
    ports: dict[str, int],
    *,
    snmp_port: int | None,
    source: Path | None,
    stay: bool,
) -> State:
    """Write down how the rig is reached."""
    holder, starter = process(answer["pid"]), process(pid)
    if holder is None or starter is None:
        raise EOFError
    community = answer["community"]
    state = State(
        folder,
        layout.name,
        layout.key,
        str(source) if source else None,
        holder,
        starter,
        ports,
        stay,
        snmp_port if community else None,
        community,
    )
    state.client_key.touch(mode=0o600)
    state.client_key.write_text(answer["client_key"])
    state.known_hosts.write_text(
        "".join(f"[{layout.ssh_address(place)}]:{ports[place.name]} {answer['host_key']}\n" for place in layout.places)
    )
    state.write()
    return state


def _abandon(pid: int, answers: int) -> None:
    """A start that failed: nothing of it may stay, so no time is given.

    `pid` may be `unshare`, whose end is not yet the holder's: the kernel kills that one after it. The last of them to
    go closes the pipe they answer on.
    """
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    deadline = time.monotonic() + END_DEADLINE_S
    while select.select([answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not os.read(answers, 65536):
            return


def _failure(layout: Layout, folder: Path, wrapper: list[str], error: BaseException) -> RigError:
    log = (folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
    said = " / ".join(log)
    if wrapper and any(line.startswith("unshare: ") for line in log):
        return _NoNamespacesError(f"{'in a user namespace' if '--user' in wrapper else 'as root'}: {said}")
    if isinstance(error, TimeoutError):
        return RigError(f"{layout.name}: the virtual rig was not up within {_deadline_s(layout):g} s. {said}".strip())
    return RigError(f"{layout.name}: the virtual rig ended while it started: {said or 'no output'}")


def _path() -> str:
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    return ":".join([*path, *(folder for folder in _SBIN if folder not in path)])
