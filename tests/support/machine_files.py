"""The files of the machine that no test may change: the system's settings, and those of the user who runs the tests."""

import os
import pwd
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISDIR

HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
PLACES = (Path("/etc"), HOME / ".ssh", HOME / ".config/rigctl", HOME / ".local/share/rigctl", Path("/var/lib/rigctl"))
"""The home folder is that of the account, because tests change $HOME."""
_OF_OTHERS = (Path("/etc/mtab"), Path("/etc/netns"), Path("/etc/resolv.conf"), Path("/etc/ld.so.cache"))
"""Written by programs of the system while tests run."""
State = dict[Path, tuple[int, ...]]


def files_in(places: Iterable[Path] = PLACES) -> State:
    """Return size, mode, owner and time of the last change of each file, by path. Folders have no time."""
    found: State = {}
    for place in places:
        for folder, _, names in os.walk(place):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                try:
                    status = path.lstat()
                except OSError:
                    continue
                own = (status.st_mode, status.st_uid, status.st_gid)
                found[path] = own if S_ISDIR(status.st_mode) else (*own, status.st_size, status.st_mtime_ns)
    return {path: state for path, state in found.items() if path not in _OF_OTHERS}


def changes(before: State, after: State) -> list[str]:
    """Return a line for each file that was made, changed or removed.

    >>> changes({Path("/etc/a"): (1,), Path("/etc/b"): (1,)}, {Path("/etc/b"): (2,), Path("/etc/c"): (1,)})
    ['/etc/a was removed', '/etc/b was changed', '/etc/c was made']
    """
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            what = "made" if path not in before else "removed" if path not in after else "changed"
            lines.append(f"{path} was {what}")
    return lines
