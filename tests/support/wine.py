"""Wine for programs of Windows, in a prefix that wineboot did not fill: 84 KB instead of 695 MB, 0.2 s instead of 7."""

import getpass
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from processes import DEADLINE_S, all_commands, eventually

SYSTEM = Path("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows")
"""Wine's own DLLs (package libwine)."""
_REGISTRY = {
    "system.reg": r"""WINE REGISTRY Version 2
;; All keys relative to \\Machine

#arch=win64

[System\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters] 1700000000
"BootId"=dword:0000002a

[System\\CurrentControlSet\\Control\\Class\\{4d36e972-e325-11ce-bfc1-08002be10318}\\0007] 1700000000
"*InterruptModeration"="1"
"*JumboPacket"="9014"
"*NumRssQueues"="4"
"*ReceiveBuffers"="512"
"*RSS"="1"
"DriverDate"="3-4-2021"
"DriverDesc"="Loop"
"ProviderName"="Anybody"
"NetCfgInstanceId"="{00000001-0000-0000-0000-4E6574446576}"

[System\\CurrentControlSet\\Services\\nsiproxy] 1700000000
"ErrorControl"=dword:00000001
"ImagePath"="C:\\windows\\system32\\nsiproxy.sys"
"ObjectName"="LocalSystem"
"Start"=dword:00000001
"Type"=dword:00000001
""",
    "user.reg": r"""WINE REGISTRY Version 2
;; All keys relative to \\User\\S-1-5-21-0-0-0-1000

#arch=win64

[Software\\Wine] 1700000000
"Version"="win10"
""",
}
"""The number of the boot, settings of a driver of lo, the driver that knows the interfaces, the version of Windows."""


def has_wine() -> bool:
    return shutil.which("wine") is not None and SYSTEM.is_dir()


def users_home(prefix: Path) -> Path:
    r"""Return the folder that is C:\users\NAME in a prefix."""
    return prefix / "drive_c/users" / getpass.getuser()


def bare_prefix(prefix: Path) -> dict[str, str]:
    """Make a prefix in a new folder, and return the environment of its programs.

    Its wineserver opens the sockets of all programs, so each network namespace needs a prefix of its own.
    """
    (prefix / "dosdevices").mkdir(parents=True)
    (prefix / "drive_c/windows").mkdir(parents=True)
    users_home(prefix).joinpath("AppData/Local").mkdir(parents=True)
    (prefix / "dosdevices/c:").symlink_to("../drive_c")
    (prefix / "dosdevices/z:").symlink_to("/")
    (prefix / "drive_c/windows/system32").symlink_to(SYSTEM)
    (prefix / ".update-timestamp").write_text("disable\n")  # else the first program starts wineboot
    for name, text in _REGISTRY.items():
        (prefix / name).write_text(text)
    return os.environ | {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}


def start_services(environment: dict[str, str]) -> None:
    """Start the services of a prefix, and wait for the process of the driver that knows its interfaces."""
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.Popen(["wine", "services.exe"], env=environment, **quiet)
    mark = f"WINEPREFIX={environment['WINEPREFIX']}\0".encode()
    eventually(lambda: any("winedevice.exe" in words and _has_environment(pid, mark) for pid, words in all_commands()))


def _has_environment(pid: int, pair: bytes) -> bool:
    with suppress(OSError):
        return pair in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def end_wine(environment: dict[str, str]) -> None:
    """End all programs of a prefix, and its wineserver."""
    subprocess.run(["wineserver", "-k"], env=environment, check=False, timeout=DEADLINE_S)
