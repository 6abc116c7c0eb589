"""Turns a virtual rig into an ordinary rig: starts it if needed, fills in its SSH addresses, and ends it.

`rigctl.virtual.holder` is the process that keeps the rig; this is the controller's side.
"""

import asyncio
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import process, run_in_thread
from rigctl.records import Port
from rigctl.rig.inventory import VIRTUAL_MTU, Rig, Secrets, Switch
from rigctl.virtual import state as rigs
from rigctl.virtual.layout import SECOND_SWITCH, STAY, SWITCH, Bridge, Layout, Place
from rigctl.virtual.machines.qemu import prepare

_MAX_NODES: Final = 250  # a /24 has 254 addresses
_START_DEADLINE_S: Final = 20.0
_BOOT_DEADLINE_S: Final = 300.0
"""Deadline for the start of a rig of virtual machines, because emulated machines boot slowly."""
_END_DEADLINE_S: Final = 5.0
"""Deadline for the holder to end; its commands have 3 s (`server.KILL_AFTER_S`). Then it is killed."""
_SBIN: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # folders with ip and tc, which PATH may lack
_LOOPBACK_HINT: Final = "Or use the loopback rig, which needs no namespaces, but has no links: --rig loopback"
_TOOLS: Final = {"unshare": "util-linux", "mount": "mount", "ip": "iproute2", "tc": "iproute2"}
_OWN: Final = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_PACKAGES: Final = Path(__file__).parents[2]  # for the holder's PYTHONPATH: -P excludes the working folder


@asynccontextmanager
async def provide(rig: Rig) -> AsyncIterator[Rig]:
    """Yield a virtual rig with the addresses, ports, user, key and known hosts of its nodes; a real rig unchanged.

    Use the rig that `up` started from the same definition. If there is none, start a rig and end it after the block, so
    simultaneous runs have a rig each. Raise `RigError` if the rig cannot be started.
    """
    if rig.virtual is None:
        yield rig
        return
    layout = layout_of(rig)
    rigs.sweep()
    lasting = rigs.find_running(layout.key)
    if lasting is not None:
        yield complete(rig, layout, lasting)
        return
    started = await start(layout, source=rig.source, stay=False)
    try:
        yield complete(rig, layout, started.state)
    finally:
        started.let_go()
        await asyncio.shield(_wait_for_end(started.state))


async def up(rig: Rig) -> tuple[Rig, rigs.State, bool]:
    """Start a virtual rig that stays until `down`. Return rig and state, and False if the rig was up already."""
    layout = layout_of(rig)
    rigs.sweep()
    with rigs.one_at_a_time(rigs.base()):  # a simultaneous `rig up` waits, and then finds the rig up
        lasting = rigs.find_running(layout.key)
        if lasting is not None:
            return complete(rig, layout, lasting), lasting, False
        started = await start(layout, source=rig.source, stay=True)
        started.let_go()
        return complete(rig, layout, started.state), started.state, True


async def down(rig: Rig) -> list[rigs.State]:
    """End all rigs that `up` started from this rig file, or from earlier contents of it. Return their states."""
    states_up = find_rigs(rig)
    for state in states_up:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.holder.pid, signal.SIGTERM)
    await asyncio.gather(*map(_wait_for_end, states_up))
    return states_up


def find_rigs(rig: Rig) -> list[rigs.State]:
    """Return the states of rigs that `up` started from this file; rigs that match its present contents come first."""
    layout = layout_of(rig)
    rigs.sweep()
    lasting = [state for state in rigs.states() if state.stays and state.up]
    mine = [state for state in lasting if state.key == layout.key or (rig.source and state.source == str(rig.source))]
    return sorted(mine, key=lambda state: state.key != layout.key)


def layout_of(rig: Rig) -> Layout:
    """Return the layout of a virtual rig. Raise `InputError` for a real rig, too many nodes, or too small an MTU."""
    if rig.virtual is None:
        raise InputError(f"{rig.name}: a real rig. Only virtual rigs can be started.")
    if len(rig.nodes) > _MAX_NODES:
        raise InputError(f"{rig.name}: {len(rig.nodes)} nodes. A virtual rig has {_MAX_NODES} at most.")
    keys = list(rig.switches)
    places = tuple(
        Place(
            node.name,
            number,
            node.link.rate_bps,
            node.link.mtu or VIRTUAL_MTU,
            keys.index(node.link.switch) if node.link.switch in keys else 0,
            None if node.link.rtt_s is None else round(node.link.rtt_s * 1e9),
            node.bottleneck_bps,
            node.sysctls,
            node.disk_bps,
            node.arch or ("aarch64" if platform.machine() == "aarch64" else "x86_64"),
            node.nic,
            rig.routed,
        )
        for number, node in enumerate(rig.nodes.values(), 1)
    )
    for place in places:
        if rig.ip_version == 6 and place.mtu < 1280 and rig.virtual != "loopback":
            # IPv6 needs 1280 bytes (RFC 8200, section 5); Linux disables IPv6 on an interface with a smaller MTU.
            raise InputError(f"{rig.name}: {place.name} has MTU {place.mtu}. ip_version 6 needs 1280 at least.")
    largest = max(place.mtu for place in places)
    bridges = tuple(
        Bridge(device, switch.key, switch.mtu or largest, switch.multicast)
        for device, switch in zip((SWITCH, SECOND_SWITCH), rig.switches.values(), strict=False)
    )
    return Layout(
        rig.name,
        rig.virtual,
        rig.ip_version,
        places,
        bridges or (Bridge(SWITCH),),
        rig.trunk.rate_bps if rig.trunk else None,
        any(switch.snmp for switch in rig.switches.values()),
        rig.routed,
    )


def complete(rig: Rig, layout: Layout, state: rigs.State) -> Rig:
    """Return the rig with the addresses, keys and interfaces that a real rig file would have."""
    nodes = {
        place.name: replace(
            rig.nodes[place.name],
            address=layout.ssh_address(place),
            port=state.ports[place.name],
            user=None if layout.kind == "loopback" else "root",
            key=state.client_key,
            known_hosts=state.known_hosts,
            configured=False,
            data_address=layout.data_address(place),
            data_interface=layout.data_interface(),
            patience=6 if layout.kind == "machines" else 1,  # cryptography is slow in an emulated machine
        )
        for place in layout.places
    }
    switches = {key: _switch_with_agent(switch, state) for key, switch in rig.switches.items()}
    return replace(rig, nodes=nodes, switches=switches, ports=tuple(_ports(layout)))


def _switch_with_agent(switch: Switch, state: rigs.State) -> Switch:
    """Return the switch with the address of the rig's snmpd; unchanged if snmpd does not run."""
    if switch.snmp is None or state.snmp_port is None:
        return switch
    snmp, secrets = replace(switch.snmp, port=state.snmp_port), Secrets(community=state.community)
    return replace(switch, address="127.0.0.1", snmp=snmp, secrets=secrets)


def _ports(layout: Layout) -> Iterator[Port]:
    for place in layout.places:
        key = layout.bridges[place.bridge].key
        if key is not None:
            yield Port(key, place.port, node=place.name)
    keys = [bridge.key for _, bridge in layout.trunk]
    for (device, bridge), peer in zip(layout.trunk, reversed(keys), strict=True):
        if bridge.key is not None:
            yield Port(bridge.key, device, peer=peer)


class _NoNamespacesError(RigError):
    """The kernel refused `unshare`; with another of the `_wrappers` it may be allowed."""


@dataclass(frozen=True, slots=True)
class RunningRig:
    """A rig that this process started. Closing the pipe `lifeline` ends the rig, unless `STAY` was sent."""

    state: rigs.State
    lifeline: IO[bytes]

    def let_go(self) -> None:
        """Send `STAY` if the rig is to stay, and close the pipe. Without `STAY`, the rig ends."""
        # A controller that is killed before it has written the state sends no `STAY`, and so leaves no rig.
        if self.state.stays:
            self.lifeline.write(STAY)
        self.lifeline.close()


async def start(layout: Layout, *, source: Path | None, stay: bool) -> RunningRig:
    """Start a rig and return it once its SSH servers answer. Raise `RigError` with the reason if that fails."""
    refusals: list[str] = []
    more = await run_in_thread(prepare, layout) if layout.kind == "machines" else {}
    for wrapper in _wrappers(layout):
        folder = rigs.new_folder(layout.key)
        try:
            return await _start(layout, wrapper, folder, more, source=source, stay=stay)
        except _NoNamespacesError as refused:
            rigs.remove_leftovers(folder)
            refusals.append(str(refused))
        except BaseException:
            rigs.remove_leftovers(folder)
            raise
    raise RigError(
        f"{layout.name}: network namespaces are allowed on this machine neither as root nor in a user namespace"
        f" ({'; '.join(refusals)}). {_LOOPBACK_HINT}"
    )


def _wrappers(layout: Layout) -> Iterator[list[str]]:
    """Yield command prefixes that start the holder in namespaces: as root, if possible, then in a user namespace."""
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
) -> RunningRig:
    with contextlib.ExitStack() as ours:
        listening = layout.places if layout.kind != "machines" else ()  # for virtual machines, QEMU listens
        sockets = {place.name: ours.enter_context(_bind(layout.ssh_address(place))) for place in listening}
        serves_snmp = layout.snmp and layout.kind == "namespaces" and shutil.which("snmpd", path=_path()) is not None
        snmp = ours.enter_context(_bind("127.0.0.1", socket.SOCK_DGRAM)) if serves_snmp else None
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        ours.callback(os.close, proc)
        orders = {
            "layout": asdict(layout),
            "sockets": {name: sock.fileno() for name, sock in sockets.items()},
            "snmp": snmp.fileno() if snmp else None,
            "proc": proc,
            "homes": str(folder / "home"),
            **more,
        }
        passed = [proc, *(sock.fileno() for sock in (*sockets.values(), *([snmp] if snmp else [])))]
        holder = _spawn(layout, wrapper, folder, passed)
        assert holder.stdin is not None and holder.stdout is not None
        ours.enter_context(holder.stdout)
        deadline_s = _BOOT_DEADLINE_S if layout.kind == "machines" else _START_DEADLINE_S
        try:
            holder.stdin.write(json.dumps(orders).encode() + b"\n")
            async with asyncio.timeout(deadline_s):
                line = await asyncio.to_thread(holder.stdout.readline)
            if not line:
                raise EOFError
            answer = json.loads(line)
            if "error" in answer:
                hint = f"\n{_LOOPBACK_HINT}" if layout.kind == "namespaces" else ""
                raise RigError(f"{layout.name}: {answer['error']}{hint}")
            answer["ports"] = answer.get("ports", {}) | {n: sock.getsockname()[1] for n, sock in sockets.items()}
            answer["snmp_port"] = snmp.getsockname()[1] if snmp and answer["community"] else None
            state = _write_state(layout, answer, holder.pid, folder, source=source, stay=stay)
            holder.returncode = 0  # else Popen warns, because nobody calls wait(); see `_reap`
            return RunningRig(state, holder.stdin)
        except BaseException as error:
            _abandon(holder)
            if isinstance(error, EOFError | TimeoutError | BrokenPipeError):
                raise _failure(layout, folder, wrapper, error, deadline_s) from None
            raise


def _bind(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Return a bound socket of this network namespace. It stays here even if the holder, in another, listens on it."""
    sock = socket.socket(socket.AF_INET, kind)
    sock.bind((address, 0))
    return sock


def _spawn(layout: Layout, wrapper: list[str], folder: Path, passed: list[int]) -> "subprocess.Popen[bytes]":
    """Start the holder. It inherits only the descriptors in `passed`; others, such as locks, would stay open."""
    module = "rigctl.virtual.machines.holder" if layout.kind == "machines" else "rigctl.virtual.holder"
    with (folder / "log").open("ab") as log:
        os.fchmod(log.fileno(), 0o600)
        return subprocess.Popen(
            # -P: import no modules from the working folder. PYTHONPATH: import the rigctl of this process.
            [*wrapper, sys.executable, "-P", "-m", module, folder.name],
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
            start_new_session=True,  # so Ctrl-C reaches only the controller, which ends the rig in order
        )


def _write_state(
    layout: Layout, answer: dict[str, Any], pid: int, folder: Path, *, source: Path | None, stay: bool
) -> rigs.State:
    holder, starter = process(answer["pid"]), process(pid)
    if holder is None or starter is None:
        raise EOFError
    rig_file, told = str(source) if source else None, {key: answer[key] for key in ("ports", "snmp_port", "community")}
    state = rigs.State(folder, layout.name, layout.key, rig_file, holder, starter, stays=stay, **told)
    state.client_key.touch(mode=0o600)
    state.client_key.write_text(answer["client_key"])
    servers = [f"[{layout.ssh_address(place)}]:{state.ports[place.name]}" for place in layout.places]
    state.known_hosts.write_text("".join(f"{server} {answer['host_key']}\n" for server in servers))
    state.write()
    return state


def _abandon(holder: "subprocess.Popen[bytes]") -> None:
    """Kill `unshare`, whose end kills the holder, and wait until both have closed their output."""
    holder.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        holder.communicate(timeout=_END_DEADLINE_S)


def _failure(layout: Layout, folder: Path, wrapper: list[str], error: BaseException, deadline_s: float) -> RigError:
    log = (folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
    text = " / ".join(log)
    if wrapper and any(line.startswith("unshare: ") for line in log):
        return _NoNamespacesError(f"{'in a user namespace' if '--user' in wrapper else 'as root'}: {text}")
    if isinstance(error, TimeoutError):
        return RigError(f"{layout.name}: the virtual rig was not up within {deadline_s:g} s. {text}".strip())
    return RigError(f"{layout.name}: the virtual rig ended while it started: {text or 'no output'}")


async def _wait_for_end(state: rigs.State) -> None:
    """Wait until a rig that is ending has ended; kill it after a deadline. Remove its folder."""
    if not await _is_gone(state):
        state.kill()
        if not await _is_gone(state):
            raise RigError(f"{state.name}: process {state.holder.pid} does not end. End it: kill -9 {state.holder.pid}")
    _reap(state.starter.pid)
    rigs.kill_commands(state.folder.name)
    rigs.remove_leftovers(state.folder)


def _reap(pid: int) -> None:
    """Take the exit status of an ended child, which else stays a zombie; ignore other processes."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


async def _is_gone(state: rigs.State) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_DEADLINE_S):
            # Poll, because the rigs of an earlier `rig up` are no child processes.
            while state.starter.alive or state.holder.alive:
                await asyncio.sleep(0.01)
            return True
    return False


def _path() -> str:
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    return ":".join([*path, *(folder for folder in _SBIN if folder not in path)])
