"""The lab of three hosts for the samples 10gbe-windows: two with Linux, and one whose programs are those of Windows.

Linux stands in for FreeBSD, and Wine for Windows, behind an SSH server that behaves as OpenSSH for Windows. The hosts
are network namespaces on one switch, without limits of their rates, so the rates tell nothing of cards.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from openssh_lab import Lab, laboratory, serve, sh  # noqa: E402 — the folder is on the path only now
from windows_host import serve_windows  # noqa: E402

HOSTS: Final = ("ubuntu", "freenas", "windows")
FIREWALL: Final = """table ip firewall {
    chain in { type filter hook input priority 0; iifname eth0 tcp dport != 22 ct state new drop; }
}"""
"""What the firewall of Windows does with a new program: it drops connections from other hosts."""
SETTINGS: Final = (
    *("--rig", "windows-lab.yaml", "--no-report", "--quiet"),
    *("--set", "congestion=default", "--set", "notes=Each host with its own congestion control."),
)


def measure_windows_lab(before: Path, after: Path) -> None:
    """Measure the mesh with the firewall of the Windows host on into the store `before`, then with it open."""
    with TemporaryDirectory() as folder, laboratory(Path(folder), HOSTS, _serve) as lab:
        shutil.copy(lab.folder / "lab.yaml", lab.folder / "windows-lab.yaml")
        for store in (before, after):
            store.unlink(missing_ok=True)
        sh(*lab.inside("windows", "nft", FIREWALL))
        lab.rigctl("run", "10gbe-mesh", *SETTINGS, code=3, RIGCTL_STORE=str(before))
        sh(*lab.inside("windows", "nft", "delete table ip firewall"))
        lab.rigctl("run", "10gbe-mesh", *SETTINGS, RIGCTL_STORE=str(after))


def _serve(lab: Lab, name: str, address: str) -> "subprocess.Popen[bytes]":
    return serve_windows(lab, name, address) if name == "windows" else serve(lab, name, address)
