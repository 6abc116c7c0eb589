"""The container: built from Containerfile, then a run on two hosts with the keys of the user's SSH agent.

Debian 13 with its Python 3.13 stands for the base image, which only an image registry has.
"""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory
from packaged import CLOSED, ROOT, index, output_of, tags
from processes import running

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]
HOSTS = ("node01", "node02")
USER = 1000
"""Of the container."""
DOCKERFILE = "FROM scratch\nADD debian.tar /\nENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels\n"
LIKE_PIPS_PYTHON = 'ln -s python3 "$1/usr/bin/python"; rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED'
"""Of Debian's Python: its name, and pip may install into it."""
Buildah = Callable[..., str]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """Commands on images of a store that this module has alone."""
    folder = tmp_path_factory.mktemp("store")
    store = ("--root", folder / "images", "--runroot", folder / "run", "--storage-driver", "vfs")
    yield lambda *words, before=(): output_of(*before, "env", "BUILDAH_ISOLATION=chroot", "buildah", *store, *words)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def base(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("base")
    like = f"--customize-hook={LIKE_PIPS_PYTHON}"
    system = ("--quiet", "--variant=minbase", "--include=python3,python3-pip", like, "trixie")
    output_of("mmdebstrap", *system, folder / "debian.tar")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (line, *_) = (ROOT / "Containerfile").read_text().partition("FROM ")[2].splitlines()
    buildah("build", "--quiet", "--tag", f"docker.io/library/{line}", "--file", folder / "Dockerfile", folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(buildah: Buildah, base: None, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build it without a network: pip finds in a folder what the index would give."""
    wheels = tmp_path_factory.mktemp("wheels")
    python = tags(platform.machine(), (17, 24, 26, 27, 28), "3.13")
    done = index("download", "--quiet", "-c", ROOT / "constraints.txt", "--dest", wheels, *python, wheel)
    assert done.returncode == 0, done.stderr
    mounted = ("--volume", f"{wheels}:/wheels:ro")
    buildah("build", "--quiet", "--pull=false", *mounted, "--tag", "rigctl", ROOT, before=CLOSED)
    shutil.rmtree(wheels)
    return "localhost/rigctl"


def test_the_image_starts_rigctl_as_its_user_in_the_folder_that_is_mounted(buildah: Buildah, image: str) -> None:
    config = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    assert config["Entrypoint"] == ["rigctl"]
    assert (config["User"], config["WorkingDir"]) == ("rigctl", "/work")
    container = buildah("from", "--pull=false", image).strip()
    assert buildah("run", container, "--", "id", "-u").strip() == str(USER)
    assert buildah("run", container, "--", "sh", "-c", "pwd; ls -A /work /tmp").split() == ["/work", "/tmp:", "/work:"]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path, HOSTS) as made:
        yield made


@pytest.fixture
def agent(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """The socket of an SSH agent that the user 1000 started; it has the key of the lab's hosts."""
    folder = tmp_path / "agent"
    folder.mkdir()
    os.chown(folder, USER, USER)
    own = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    with running([*own, "ssh-agent", "-D", "-a", "agent"], cwd=folder, stdout=subprocess.DEVNULL):
        environment = os.environ | {"SSH_AUTH_SOCK": str(folder / "agent")}
        output_of("sh", "-c", "until [ -S $SSH_AUTH_SOCK ]; do sleep 0.05; done", environment=environment)
        output_of("ssh-add", "-q", lab.folder / "id", environment=environment)
        yield folder / "agent"


def test_a_run_uses_the_agents_keys_and_leaves_its_store(buildah: Buildah, image: str, lab: Lab, agent: Path) -> None:
    work = lab.folder / "work"
    work.mkdir()
    rig = (lab.folder / "lab.yaml").read_text().replace(", key: id, known_hosts: known", "")
    assert "id" not in rig.split()
    (work / "mylab.yaml").write_text(rig)
    for each in (work, work / "mylab.yaml"):
        os.chown(each, USER, USER)
    mounts = {work: "/work", agent: "/ssh-agent", lab.folder / "known": "/home/rigctl/.ssh/known_hosts:ro"}
    volumes = [word for here, there in mounts.items() for word in ("--volume", f"{here}:{there}")]
    container = buildah("from", "--pull=false", image).strip()
    pairs = f"pairs={'->'.join(HOSTS)}"
    run = ("run", "gigablox", "--rig", "mylab.yaml", "--set", pairs, "--set", "max_skew=1s", "--duration", "1s")
    assert "Goodput" in buildah("run", *volumes, container, "--", "rigctl", *run, before=lab.inside("ctl"))
    assert {each.name for each in work.iterdir()} >= {"mylab.yaml", "rigctl.db"}
    assert (work / "rigctl.db").stat().st_uid == USER
    assert "Goodput" in buildah("run", *volumes, container, "--", "rigctl", "show", before=CLOSED)
    for name in HOSTS:
        assert [line for line in lab.processes(name).values() if "sshd" not in line] == []
