"""Rules on the disks of file transfers: their folders exist, are on a disk, and have room for all files of a test."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from rigctl.base.values import group_by
from rigctl.findings import Finding
from rigctl.findings import nodes as folders
from rigctl.hosts.surroundings import Disk
from rigctl.paths.commands import find_on
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell
from rigctl.settings import READ, WRITE

_Place: TypeAlias = tuple[str, str]
"""A node and a folder there."""
_REMOTE: Final = (":", "//")
"""A sign in the name of a network file system's device, as in nas:/export or //nas/share."""


def folders_of(cells: Iterable[Cell]) -> list[str]:
    """Return the folders in which tests keep files."""
    return sorted({cell.folder for cell in cells if cell.folder and "disk" in (cell[READ], cell[WRITE])})


def disks(state: RigState) -> Iterator[Finding]:
    """Check that the folders of file transfers exist on a disk, with enough space for the files of all flows.

    Files of several nodes on one file system count together, as those of all streams of a test at a node.
    """
    found = {(each.name, disk.folder): disk for each in state.reached() for disk in _disks_of(each)}
    groups = group_by(state.cells(), lambda cell: cell.first).values()
    needs = [_bytes_by_place(cells) for cells in groups]
    wanted: Counter[tuple[object, ...]] = Counter()  # most bytes that a test needs, by file system
    for need in needs:
        own: Counter[tuple[object, ...]] = Counter()
        for place in need.keys() & found.keys():
            own[_file_system(state.nodes[place[0]], found[place])] += need[place]
        wanted |= own
    for place in sorted({place for need in needs for place in need if place in found}):
        each, disk = state.nodes[place[0]], found[place]
        if disk.free_bytes is None:
            yield find_on(each, folders.NO_FOLDER, folder=disk.folder)
        elif disk.in_memory:
            yield find_on(each, folders.FOLDER_IN_MEMORY, folder=disk.folder)
        elif disk.free_bytes < (need_bytes := wanted[_file_system(each, disk)]):
            numbers = {"free_bytes": disk.free_bytes, "wanted_bytes": need_bytes}
            sizes = {"free_mb": disk.free_bytes / 1e6, "wanted_mb": need_bytes / 1e6}
            yield find_on(each, folders.FOLDER_FULL, numbers, folder=disk.folder, **sizes)


def _disks_of(each: NodeState) -> tuple[Disk, ...]:
    return each.around.disks if each.around is not None else ()


def _bytes_by_place(cells: Iterable[Cell]) -> Counter[_Place]:
    """Return how many bytes the files take that tests, measured together, read or write at each node."""
    needs: Counter[_Place] = Counter()
    for cell in (cell for cell in cells if cell.folder and cell.kind.files):
        for stream in cell.streams:
            for name, setting in ((stream.sender, READ), (stream.receiver, WRITE)):
                if cell[setting] == "disk":
                    needs[name, str(cell.folder)] += (cell.message_bytes or 0) * cell.parallel
    return needs


def _file_system(each: NodeState, disk: Disk) -> tuple[object, ...]:
    """Return what identifies a file system: a device of a host, or the name of a network file system."""
    if any(sign in disk.device for sign in _REMOTE):
        return (disk.device,)
    host = each.facts.get("boot_id")
    return (host, disk.device) if host and disk.device else (each.name, disk.folder)
