"""A store on a real NFS mount that two hosts share: rollback journal, turns, and files in WAL mode."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from typing import Any, Final

import annotated_types
import platformdirs
import pydantic
import pydantic_core
import pytest
import sqlalchemy
import typing_extensions
import typing_inspection
import yaml
from machine_lab import Lab, lab
from processes import DEADLINE_S, output_of, running
from virtual_rigs import openssh

import rigctl
from rigctl.virtual.machines.image import download_packages, image, kernel_modules, unpack_packages

pytestmark = [pytest.mark.machines, pytest.mark.timeout(900)]
MODULES: Final = ("nfsd", "nfsv4")
LEFT_OUT: Final = ("linux-image", "perl", "systemd", "udev", "usrmerge", "libpython3.11-testsuite")
"""Packages that NFS and Python name, and whose files this test does not use."""
LIBRARIES: Final = (
    rigctl,
    annotated_types,
    sqlalchemy,
    pydantic,
    pydantic_core,
    platformdirs,
    typing_inspection,
    typing_extensions,
    yaml,
)
SERVE: Final = """
set -e
mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /srv/home /var/lib/nfs/v4recovery /var/lib/nfs/sm
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
echo '/srv/home *(rw,no_root_squash,no_subtree_check,insecure,fsid=0,sync)' >/etc/exports
exportfs -ra
rpc.mountd
rpc.nfsd --no-nfs-version 3 --grace-time 10 --lease-time 10 4
"""
BEGIN: Final = """
import json, os, sqlite3, sys
from contextlib import closing
from rigctl.base.errors import RigctlError
from rigctl.records import Night
from rigctl.store import open_store
from rigctl.store.shared_folder import mount_of
from pathlib import Path

def night(number):
    return Night("s", os.uname().nodename, 1e9 + number, None, None, None, None, None)

def mode(path):
    with closing(sqlite3.connect(path)) as plain:
        return plain.execute("PRAGMA journal_mode").fetchone()[0], plain.execute("PRAGMA integrity_check").fetchone()[0]

def tell(value):
    print(json.dumps(value), flush=True)
"""


class NfsLab:
    """Machines of which `one` and `two` have their home from `server`."""

    def __init__(self, machines: Lab) -> None:
        self.machines = machines

    def words(self, node: str, code: str) -> list[str]:
        python = f"PYTHONPATH=/opt python3 -c {shlex.quote(BEGIN + code)}"
        return [*map(str, openssh(self.machines.rig, node)), python]

    def told(self, node: str, code: str) -> Any:
        return json.loads(output_of(self.words(node, code)).splitlines()[-1])

    def refusal(self, node: str, path: str) -> str:
        code = f"""
try:
    open_store({path!r}).close()
    tell("")
except RigctlError as error:
    tell(str(error))
"""
        return str(self.told(node, code))


@pytest.fixture(scope="module")
def nfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NfsLab]:
    folder = tmp_path_factory.mktemp("nfs")
    packages = download_packages(folder / "apt", "amd64", ["nfs-kernel-server", "python3", "linux-image-amd64"])
    kernels = [each for each in packages if each.name.startswith("linux-image-6")]
    kernel = unpack_packages(kernels, folder / "kernel")
    (version,) = (kernel / "usr/lib/modules").iterdir()
    there = (image("x86_64").folder / "packages").read_text().split()
    wanted = [each for each in packages if each.stem not in there and not each.name.startswith(LEFT_OUT)]
    tree = unpack_packages(wanted, folder / "tree")
    modules = kernel_modules(version, MODULES)
    for number, (name, content) in enumerate(modules.items()):
        (tree / "opt/modules").mkdir(parents=True, exist_ok=True)
        (tree / f"opt/modules/{number:02}-{name}.ko").write_bytes(content)
    for module in LIBRARIES:
        path = Path(module.__file__ or "")
        if path.name == "__init__.py":
            copytree(path.parent, tree / "opt" / path.parent.name, ignore=ignore_patterns("__pycache__", "agents"))
        else:
            copy(path, tree / "opt")
    archive = folder / "tree.tar.gz"
    output_of(["tar", "-c", "-z", "--exclude=./usr/share", "-C", str(tree), "-f", str(archive), "."])
    with pytest.MonkeyPatch.context() as patch, lab(tmp_path_factory.mktemp("lab"), "nfs.yaml", patch) as machines:
        for node in machines.nodes:
            assert machines.ssh(node, "uname -r").strip() == version.name, f"update the image: rm -r {image('x86_64')}"
            with archive.open("rb") as packed:
                unpacking = [*map(str, openssh(machines.rig, node)), "tar -x -z --keep-directory-symlink -C /"]
                subprocess.run(unpacking, stdin=packed, check=True, timeout=DEADLINE_S)
            machines.ssh(node, "ldconfig; for module in /opt/modules/*; do insmod $module || true; done")
        machines.ssh("server", SERVE)
        for node in ("one", "two"):
            machines.ssh(node, "mkdir -p /home && mount -t nfs4 -o vers=4.2 server:/ /home")
        yield NfsLab(machines)


def test_a_new_store_on_nfs_has_a_rollback_journal(nfs: NfsLab) -> None:
    code = """
path = "/home/anna/.local/share/rigctl/rigctl.db"
with open_store(path) as store:
    store.history.put_night(night(1))
tell([mount_of(Path(path)).kind, *mode(path), sorted(os.listdir(os.path.dirname(path)))])
"""
    assert nfs.told("one", code) == ["nfs4", "delete", "ok", ["rigctl.db"]]
    code = """
with open_store("/home/anna/.local/share/rigctl/rigctl.db", create=False) as store:
    tell([each.rig for each in store.history.nights()])
"""
    assert nfs.told("two", code) == ["one"]


@pytest.mark.parametrize("create", [True, False])
def test_a_file_in_wal_mode_is_converted_by_who_opens_it_first(nfs: NfsLab, create: bool) -> None:
    name = f"wal-{create}.db"
    made = f"""
with open_store("/srv/home/{name}") as store:
    store.history.put_night(night(1))
tell(mode("/srv/home/{name}"))
"""
    assert nfs.told("server", made) == ["wal", "ok"]
    code = f"""
with open_store("/home/{name}", create={create}) as store:
    found = [each.rig for each in store.history.nights()]
tell([found, *mode("/home/{name}")])
"""
    assert nfs.told("one", code) == [["server"], "delete", "ok"]
    # The server, whose disk is local, leaves it so.
    assert nfs.told("server", made) == ["delete", "ok"]


def test_a_file_in_wal_mode_that_another_host_has_open_is_refused(nfs: NfsLab) -> None:
    held = """
plain = sqlite3.connect("/home/open.db")
plain.execute("PRAGMA journal_mode = WAL")
plain.execute("CREATE TABLE t (x)")
tell("open")
sys.stdin.readline()
"""
    with running(nfs.words("one", held), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert json.loads(holder.stdout.readline()) == "open"
        said = nfs.refusal("two", "/home/open.db")
    assert said.startswith(
        "store /home/open.db is on nfs4 in WAL mode, which SQLite forbids there, and another program"
    )
    assert "/var/tmp/rigctl.db" in said
    assert "PostgreSQL" in said


def test_a_second_host_waits_for_the_first(nfs: NfsLab) -> None:
    held = """
with open_store("/home/turns.db") as store:
    store.history.put_night(night(1))
plain = sqlite3.connect("/home/turns.db", isolation_level=None)
plain.execute("BEGIN EXCLUSIVE")
tell("held")
sys.stdin.readline()
plain.execute("COMMIT")
"""
    other = """
tell("begins")
with open_store("/home/turns.db") as store:
    store.history.put_night(night(2))
    tell([each.rig for each in store.history.nights()])
"""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with running(nfs.words("one", held), **pipes) as first:
        assert first.stdin is not None and first.stdout is not None
        assert json.loads(first.stdout.readline()) == "held"
        with running(nfs.words("two", other), **pipes) as second:
            assert second.stdout is not None
            assert json.loads(second.stdout.readline()) == "begins"
            assert second.poll() is None
            first.stdin.write(b"\n")
            first.stdin.flush()
            assert sorted(json.loads(second.stdout.readline())) == ["one", "two"]
        assert first.wait(DEADLINE_S) == 0


def test_two_hosts_write_at_once_and_lose_nothing(nfs: NfsLab) -> None:
    code = """
with open_store("/home/both.db") as store:
    for number in range(40):
        store.history.put_night(night(number))
tell("done")
"""
    with (
        running(nfs.words("one", code), stdout=subprocess.PIPE) as first,
        running(nfs.words("two", code), stdout=subprocess.PIPE) as second,
    ):
        assert [process.wait(DEADLINE_S) for process in (first, second)] == [0, 0]
    code = """
with open_store("/home/both.db", create=False) as store:
    nights = [each.rig for each in store.history.nights()]
tell([nights.count("one"), nights.count("two"), *mode("/home/both.db")])
"""
    assert nfs.told("server", code.replace("/home", "/srv/home")) == [40, 40, "delete", "ok"]
    assert nfs.told("two", code) == [40, 40, "delete", "ok"]
