"""Makes the nodes of a virtual rig in the holder, inside its mount, network, process and perhaps user namespaces.

There is no clean-up: the kernel removes everything when the holder's last process has ended.
"""

import ctypes
import functools
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from rigctl.base.errors import RigError
from rigctl.base.processes import run_command
from rigctl.virtual.layout import NODE_INTERFACE, ROUTER, Layout, Place
from rigctl.virtual.links import node_lines, node_shaping_lines, port_shaping_lines, router_lines, switch_lines
from rigctl.virtual.relay import make_tap, nodes_with_rtt

_CLONE_NEWNET: Final = 0x40000000  # value from linux/sched.h
_NAMESPACES: Final = Path("/run/netns")  # where ip(8) keeps network namespaces
_IPV6: Final = Path("/proc/sys/net/ipv6/conf")
_GROUPS: Final = Path("/sys/fs/cgroup")
_KEPT_GROUPS: Final = Path("/run/rigctl/cgroup")
_WITH_GROUPS: Final = f'mount --rbind {_KEPT_GROUPS} {_GROUPS} 2>/dev/null; exec "$@"'
"""Adds control groups to a node's new /sys, so that agents see when a quota throttles them."""
_T = TypeVar("_T")


def home_of(name: str) -> Path:
    """Return the home folder of a node. Nodes share all other files of the machine."""
    return Path("/run/rigctl/home") / name


@functools.cache
def _shows_own_sys() -> bool:
    """Tell whether `ip netns exec` works. It mounts a new /sys for the node, which some containers forbid."""
    some = next(_NAMESPACES.iterdir()).name
    return subprocess.run(["ip", "netns", "exec", some, "true"], capture_output=True, check=False).returncode == 0


def command_prefix(name: str) -> tuple[str, ...]:
    """Return the command prefix that enters a node's network namespace, with the node's /sys if possible."""
    if _shows_own_sys():
        return ("ip", "netns", "exec", name, "/bin/sh", "-c", _WITH_GROUPS, "sh")
    return ("nsenter", f"--net={_NAMESPACES / name}", "--")


def make_namespaces(layout: Layout) -> dict[str, tuple[int, int]]:
    """Make switches, nodes and links. Return the node's TAP and the switch's TAP of links with an rtt, by node."""
    # ip(8) keeps namespaces in /run, where ordinary users cannot write, so mount a private /run.
    run_command(["mount", "-t", "tmpfs", "-o", "mode=0755", "rigctl", "/run"])
    for folder in (_NAMESPACES, Path("/run/lock"), Path("/run/sshd")):
        folder.mkdir(parents=True, exist_ok=True)
    for place in layout.places:
        home_of(place.name).mkdir(parents=True, mode=0o700)
    if _GROUPS.is_dir():
        _KEPT_GROUPS.mkdir()
        run_command(["mount", "--rbind", str(_GROUPS), str(_KEPT_GROUPS)])
    _name_nodes(layout)
    ipv6 = _IPV6.exists()
    if layout.ip_version == 6 and not ipv6:
        raise RigError(f"{layout.name}: this machine has no IPv6. Use ip_version: 4.")
    if ipv6:
        _sysctl("disable_ipv6", 1)  # so that the switches get no address and send no packets
    names = [place.name for place in layout.places] + ([ROUTER] if layout.routed else [])
    _batch(["ip"], (f"netns add {name}" for name in names))
    if ipv6:
        for name in names:
            in_namespace(name, _quiet_ipv6)
    taps = {
        place.name: (in_namespace(place.name, lambda: make_tap(NODE_INTERFACE)), make_tap(place.port))
        for place in nodes_with_rtt(layout)
    }
    _batch(["ip"], switch_lines(layout))
    _batch(["tc"], port_shaping_lines(layout, {place.name: place.mtu for place in layout.places}))
    for place in layout.places:
        _batch(["ip", "-n", place.name], node_lines(place, ipv6))
        _batch(["tc", "-n", place.name], node_shaping_lines(place, place.mtu))
        if place.sysctls:
            in_namespace(place.name, functools.partial(_tune, place))
    if layout.routed:
        in_namespace(ROUTER, functools.partial(_forward, ipv6))
        _batch(["ip", "-n", ROUTER], router_lines(ipv6))
    return taps


def _name_nodes(layout: Layout) -> None:
    """Make `ping pi2` work on every node, by a private /etc/hosts."""
    machine, ours = Path("/etc/hosts"), Path("/run/rigctl/hosts")
    if machine.is_file():
        lines = [f"{layout.data_address(place)} {place.name}" for place in layout.places]
        ours.write_text("\n".join([machine.read_text(errors="replace").rstrip("\n"), *lines, ""]))
        run_command(["mount", "--bind", str(ours), str(machine)])


def in_namespace(name: str, work: Callable[[], _T]) -> _T:
    """Run `work` in a thread in a node's network namespace, and return its result."""

    def enter_and_work() -> _T:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = os.open(_NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(descriptor, _CLONE_NEWNET) != 0:
                raise RigError(f"{name}: cannot enter its network namespace: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(descriptor)
        return work()

    with ThreadPoolExecutor(1) as own:
        return own.submit(enter_and_work).result()


def ssh_socket(layout: Layout, place: Place) -> socket.socket:
    """Return a socket bound to port 22 of the node's data address, in the node's namespace."""
    family, address = socket.AF_INET6 if layout.ip_version == 6 else socket.AF_INET, layout.data_address(place)
    return in_namespace(place.name, lambda: socket.create_server((address, 22), family=family))


def _tune(place: Place) -> None:
    for name, value in place.sysctls:
        path = Path("/proc/sys", *name.split("."))
        try:
            path.write_text(value)
        except OSError as error:
            why = "network namespaces lack this sysctl" if isinstance(error, FileNotFoundError) else str(error.strerror)
            raise RigError(f"{place.name}: sysctl {name} = {value}: {why}") from None


def _quiet_ipv6() -> None:
    _sysctl("disable_ipv6", 0)
    _sysctl("accept_dad", 0)  # during duplicate detection, for a second, no socket can be bound to the address
    _sysctl("accept_ra", 0)


def _forward(ipv6: bool) -> None:
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    if ipv6:
        _sysctl("forwarding", 1)


def _sysctl(name: str, value: int) -> None:
    # /proc/sys/net belongs to the network namespace of the thread that opens it.
    for scope in ("all", "default"):
        (_IPV6 / scope / name).write_text(str(value))


def _batch(tool: list[str], lines: Iterable[str]) -> None:
    """Run one `ip` or `tc` for all lines, because a process per line would take most of a rig's start."""
    text = "".join(f"{line}\n" for line in lines)
    if not text:
        return
    try:
        run_command([*tool, "-batch", "-"], text=text)
    except RigError as error:
        # ip and tc report only the number of a wrong line, so add the line.
        failed = re.search(r"Command failed -:(\d+)", str(error))
        raise RigError(f"{error} [{text.splitlines()[int(failed[1]) - 1]}]" if failed else str(error)) from None
