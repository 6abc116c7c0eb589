"""Linux 6.12 of Debian in a machine, with the driver netdevsim, and what the agent and that kernel say to each other.

netdevsim (drivers/net/netdevsim of the kernel) is a network card without hardware, on which the kernel tests ethtool.
Debian has it only as source. `FILES` are what `recordings` returned; `RIGCTL_GOLDEN=renew` with
tests/machines/test_wire.py writes them anew.
"""

import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any, Final

import guests
import pytest
from layered import carded_machine
from processes import output_of
from talk import AGENTS

from rigctl.rig.inventory import Arch
from rigctl.virtual.machines import image as images
from rigctl.virtual.machines.image import Image, archive, kernel_modules, pad, unpack_packages
from rigctl.virtual.state import one_at_a_time

FIXTURES: Final = Path(__file__).parents[1] / "unit/fixtures/wire"
NLMSG_ERROR: Final = 2
FILES: Final = {name: FIXTURES / f"{name}.txt" for name in ("netdevsim-6.12", "e1000e-qemu")}
_DEADLINE_S: Final = 1800.0
_SERIES: Final = "6.12"
_PART: Final = "drivers/net/netdevsim"
_DRIVERS: Final = ("virtio_pci", "virtio_blk", "virtio_net", "e1000e", "crc32c_generic", "ext4", "8021q")
_OPERATIONS: Final = "static const struct ethtool_ops nsim_ethtool_ops = {\n"
_SWITCHES: Final = '\tdebugfs_create_u32("get_err", '
_RISING: Final = {
    "rx_pause_frames = 1;": "rx_pause_frames = 1 + risen;",
    "tx_pause_frames = 2;": "tx_pause_frames = 2 + 2 * risen;",
    "corrected_blocks.total = 123;": "corrected_blocks.total = 123 + 7 * risen;",
    "uncorrectable_blocks.total = 4;": "uncorrectable_blocks.total = 4 + 8 * risen;",
    '#include "netdevsim.h"\n': '#include "netdevsim.h"\n#include <linux/linkmode.h>\n\nstatic u32 risen;\n',
    _SWITCHES: f'\tdebugfs_create_u32("risen", 0600, ethtool, &risen);\n{_SWITCHES}',
    _OPERATIONS: f"""\
static void nsim_get_eth_mac_stats(struct net_device *dev, struct ethtool_eth_mac_stats *stats)
{{
	stats->FrameCheckSequenceErrors = 3 * (u64)risen;
	stats->AlignmentErrors = 4 * (u64)risen;
	stats->LateCollisions = 5 * (u64)risen;
}}

static void nsim_get_eth_phy_stats(struct net_device *dev, struct ethtool_eth_phy_stats *stats)
{{
	stats->SymbolErrorDuringCarrier = 6 * (u64)risen;
}}

static struct ethtool_keee eee;

static int nsim_get_eee(struct net_device *dev, struct ethtool_keee *now)
{{
	*now = eee;
	linkmode_zero(now->supported);
	linkmode_set_bit(ETHTOOL_LINK_MODE_100baseT_Full_BIT, now->supported);
	linkmode_set_bit(ETHTOOL_LINK_MODE_1000baseT_Full_BIT, now->supported);
	linkmode_set_bit(ETHTOOL_LINK_MODE_2500baseT_Full_BIT, now->supported);
	return 0;
}}

static int nsim_set_eee(struct net_device *dev, struct ethtool_keee *wanted)
{{
	eee = *wanted;
	if (!eee.eee_enabled)
		linkmode_zero(eee.advertised);
	return 0;
}}

{_OPERATIONS}\t.get_eth_mac_stats = nsim_get_eth_mac_stats,
	.get_eth_phy_stats = nsim_get_eth_phy_stats,
	.get_eee = nsim_get_eee,
	.set_eee = nsim_set_eee,
""",
}
"""Changes of ethtool.c: all counters rise, each by another number; it has those of the groups eth-mac and eth-phy, and
Energy-Efficient Ethernet, which, switched off, is offered for no link mode, as phylib did before Linux 6.8.

In Debian's source the counters are constants, those groups have none, and it has no Energy-Efficient Ethernet.
"""
RISES: Final = {
    "rx_pause": 1,
    "tx_pause": 2,
    "fcs_errors": 3,
    "alignment_errors": 4,
    "late_collisions": 5,
    "symbol_errors": 6,
    "fec_corrected": 7,
    "fec_uncorrectable": 8,
}
"""How much each counter rises when `risen` of the changed driver rises by 1."""
CARD: Final = "sim0"
SWITCHES: Final = "/sys/kernel/debug/netdevsim/netdevsim1/ports/0/ethtool"
_LOAD: Final = f"""
set -e
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
if [ -d /sys/module/netdevsim ]; then echo 1 >/sys/bus/netdevsim/del_device; rmmod netdevsim; fi
insmod /root/DRIVER.ko
echo "1 1" >/sys/bus/netdevsim/new_device
ip link set "$(ls /sys/bus/netdevsim/devices/netdevsim1/net)" name {CARD}
ip link set {CARD} up
ip addr add 10.9.9.1/24 dev {CARD}
"""
_RECORDER: Final = r"""
#include "ethtool.h"
#include "wire.h"
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#undef send
#undef recv
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

int setting_interface(const char *interface, unsigned long request, struct ifreq *ask)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0), error;

    snprintf(ask->ifr_name, sizeof ask->ifr_name, "%s", interface);
    error = ioctl(fd, request, ask) < 0 ? errno : 0;
    close(fd);
    return error;
}

static void print(char way, const uint8_t *bytes, ssize_t count)
{
    printf("%c ", way);
    for (ssize_t i = 0; i < count; i++)
        printf("%02x", bytes[i]);
    puts("");
}

static const char *name_of(const struct nlmsghdr *head)
{
    if (head->nlmsg_type == GENL_ID_CTRL)
        return "CTRL_CMD_GETFAMILY";
    switch (((const struct genlmsghdr *)NLMSG_DATA(head))->cmd) {
    case ETHTOOL_MSG_STATS_GET: return "ETHTOOL_MSG_STATS_GET";
    case ETHTOOL_MSG_PAUSE_GET: return "ETHTOOL_MSG_PAUSE_GET";
    case ETHTOOL_MSG_FEC_GET: return "ETHTOOL_MSG_FEC_GET";
    case ETHTOOL_MSG_EEE_GET: return "ETHTOOL_MSG_EEE_GET";
    default: return "another";
    }
}

ssize_t send_told(int fd, const void *message, size_t size, int flags)
{
    printf("%s\n", name_of(message));
    print('>', message, (ssize_t)size);
    return send(fd, message, size, flags);
}

ssize_t recv_told(int fd, void *message, size_t size, int flags)
{
    ssize_t got = recv(fd, message, size, flags);

    print('<', message, got);
    return got;
}

static void ignore(struct rtattr *first, int length, void *into)
{
    (void)first, (void)length, (void)into;
}

#define AS_UNKNOWN(name) .name = -1,
#define AS_PRINTED(name) printf(" %s=%lld", #name, (long long)counters.name);

int main(int count, char **words)
{
    struct wire_counters counters = {WIRE_COUNTS(AS_UNKNOWN)};
    struct netlink_request request;

    if (count != 2)
        return 1;
    wire_read(words[1], &counters);
    ethtool_begin(&request, ETHTOOL_MSG_EEE_GET, ETHTOOL_A_EEE_HEADER, words[1], 0);
    ethtool_ask(&request, ignore, NULL);
    printf("wire_read:");
    WIRE_COUNTS(AS_PRINTED)
    puts("");
    return 0;
}
"""
"""Prints what the agent's own code sends and receives of a card, in hexadecimal digits; -1 is an unknown counter."""


def netdevsim_image() -> tuple[Image, dict[str, Path]]:
    """Return an image with Linux 6.12, and the files of the driver: `netdevsim` is Debian's, `rising` is changed.

    Both are made once and cached.
    """
    key = hashlib.sha256(repr((_SERIES, _DRIVERS, _RISING, images.key_of("x86_64"))).encode()).hexdigest()[:12]
    base, folder = images.image("x86_64"), images.cache() / f"netdevsim-{key}"
    with one_at_a_time(folder.parent):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=".netdevsim-", dir=folder.parent) as place:
                made = Path(place, "image")
                made.mkdir()
                _make(Path(place), base, made)
                made.rename(folder)
    return Image("x86_64", folder), {name: folder / f"{name}.ko" for name in ("netdevsim", "rising")}


def _make(work: Path, base: Image, folder: Path) -> None:
    print(f"Making an image with Linux {_SERIES} and netdevsim, once: about two minutes.")
    kernel, source, files = _download(work)
    root = unpack_packages(files, work / "root")
    _unpack_driver(source, work)
    copytree(work / _PART, work / "rising")
    text = (work / "rising/ethtool.c").read_text()
    for before, after in _RISING.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (work / "rising/ethtool.c").write_text(text)
    for name, driver in (("netdevsim", work / _PART), ("rising", work / "rising")):
        copyfile(_built(root / f"usr/src/linux-headers-{kernel}", driver), folder / f"{name}.ko")
    copyfile(root / f"boot/vmlinuz-{kernel}", folder / "kernel")
    (folder / "disk").symlink_to(base.folder / "disk")
    # Among the kernel's own modules, for what it needs of them.
    copyfile(folder / "netdevsim.ko", (modules := root / "usr/lib/modules" / kernel) / "kernel/netdevsim.ko")
    loaded = kernel_modules(modules, (*_DRIVERS, "netdevsim"))
    del loaded["netdevsim"]
    content = {f"modules/{name}": module for name, module in loaded.items()}
    content["modules/order"] = "".join(f"{name}\n" for name in loaded).encode()
    # A file of a later archive takes the place of the one with its name.
    (folder / "initrd").write_bytes(pad((base.folder / "initrd").read_bytes()) + archive(content))


def _download(work: Path) -> tuple[str, Path, list[Path]]:
    """Return the kernel's name, its source package, and the packages of the kernel and its headers."""
    apt = work / "apt"
    for place in ("state/lists/partial", "cache/archives/partial"):
        (apt / place).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(images.configuration(apt, "amd64"))
    environment = os.environ | {"APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C"}
    told: dict[str, Any] = {"env": environment, "timeout": _DEADLINE_S, "cwd": apt}
    output_of(["apt-get", "-qq", "update"], **told)
    names = output_of(["apt-cache", "pkgnames", f"linux-headers-{_SERIES}."], **told).split()
    plain = [name for name in names if re.fullmatch(r"linux-headers-[\d.]+\+deb\d+-amd64", name)]
    kernel = max(plain, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])[14:]
    said = output_of(["apt-cache", "show", "--no-all-versions", f"linux-headers-{kernel}"], **told)
    (version,) = re.findall(r"^Version: (\S+)$", said, re.MULTILINE)
    local = kernel.removesuffix("-amd64")
    parts = [f"linux-headers-{kernel}", f"linux-headers-{local}-common", f"linux-kbuild-{local}"]
    parts += [f"linux-image-{kernel}", f"linux-source-{_SERIES}={version}"]
    output_of(["apt-get", "-qq", "download", *parts], **told)
    (source,) = apt.glob("linux-source-*.deb")
    return kernel, source, sorted(set(apt.glob("*.deb")) - {source})


def _unpack_driver(source: Path, work: Path) -> None:
    """Unpack the driver's folder of Debian's source package."""
    tar = f"linux-source-{_SERIES}.tar.xz"
    outer = 'dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/src/$2'
    inner = 'tar -xJ --no-same-owner --strip-components=1 -C "$3" "${2%.tar.xz}/$4"'
    output_of(["bash", "-euo", "pipefail", "-c", f"{outer} | {inner}", "-", str(source), tar, str(work), _PART])


def _built(headers: Path, driver: Path) -> Path:
    """Build a driver for the kernel of these headers, and return its file."""
    common = re.sub(r"-amd64$", "-common", str(headers))
    (headers / "Makefile").write_text(f"include {common}/Makefile\n")  # in Debian's, the folder is /usr/src
    # BTF, for programs in the kernel, would need a tool more.
    options = ["CC=gcc", "CONFIG_NETDEVSIM=m", "CONFIG_DEBUG_INFO_BTF_MODULES="]
    output_of(["nice", "make", "-s", "-j2", "-C", headers, f"M={driver}", *options, "modules"], timeout=_DEADLINE_S)
    output_of(["strip", "--strip-debug", driver / "netdevsim.ko"])
    return driver / "netdevsim.ko"


def build_recorder(folder: Path) -> Path:
    """Build a program that reads a card as the agent does and prints the messages; return its path."""
    (folder / "recorder.c").write_text(_RECORDER)
    files = [folder / "recorder.c", *(AGENTS / f"{name}-linux.c" for name in ("wire", "ethtool", "netlink"))]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Dsend=send_told", "-Drecv=recv_told", "-O1", "-static", f"-I{AGENTS}"]
    output_of(["gcc", *flags, "-o", folder / "recorder", *files])
    return folder / "recorder"


class Machine:
    """A machine with Linux 6.12 and the cards eth2 to eth5 (e1000e) and ssh0 (virtio_net)."""

    def __init__(self, ssh: list[str], drivers: dict[str, Path]) -> None:
        self.ssh = ssh
        for file in drivers.values():
            self.put(file, file.name)

    def run(self, command: str) -> str:
        return output_of([*self.ssh, command])

    def put(self, file: Path, name: str) -> None:
        with file.open("rb") as content:
            output_of([*self.ssh, f"cat >/root/{name}; chmod 755 /root/{name}"], stdin=content)

    def load(self, driver: str) -> None:
        """Load `netdevsim` or `rising`, and make a new card, `CARD`."""
        self.run(_LOAD.replace("DRIVER", driver))

    def switch(self, **switches: int) -> None:
        """Set switches of the driver, by the ends of their paths, such as `rx=0`."""
        ends = {"rx": "pause/report_stats_rx", "tx": "pause/report_stats_tx"}
        self.run("; ".join(f"echo {now} >{SWITCHES}/{ends.get(name, name)}" for name, now in switches.items()))


@contextmanager
def netdevsim_machine(folder: Path) -> Iterator[Machine]:
    """Yield a machine with the driver, which ends with the block."""
    image, drivers = netdevsim_image()

    def newer(arch: Arch) -> Image:
        assert arch == image.arch
        return image

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guests, "make_image", newer)
        with carded_machine(folder) as ssh:
            yield Machine(ssh, drivers)


_STATES: Final[dict[str, tuple[str, str, dict[str, int]]]] = {
    "Debian's netdevsim": ("netdevsim", CARD, {}),
    "Debian's netdevsim, report_stats_rx off": ("netdevsim", CARD, {"rx": 0}),
    "Debian's netdevsim, both off, get_err 95": ("netdevsim", CARD, {"rx": 0, "tx": 0, "get_err": 95}),
    "changed netdevsim, risen 1000": ("rising", CARD, {"risen": 1000}),
    "e1000e": ("rising", "eth2", {}),
    "virtio_net": ("rising", "ssh0", {}),
}
"""What is recorded → the driver that is loaded, the card that is read, and the driver's switches."""
_COMMANDS: Final = (
    "ethtool -i CARD",
    "ethtool -I --json -a CARD",
    "ethtool -I --json --show-fec CARD",
    "ethtool --json -S CARD --groups eth-phy eth-mac",
    "ethtool --show-eee CARD",
)
_STANDARD: Final = {
    "fcs_errors": ("eth-mac", "FrameCheckSequenceErrors"),
    "alignment_errors": ("eth-mac", "AlignmentErrors"),
    "late_collisions": ("eth-mac", "LateCollisions"),
    "symbol_errors": ("eth-phy", "SymbolErrorDuringCarrier"),
}


def recordings(machine: Machine, recorder: Path) -> dict[str, str]:
    """Return the text of each of `FILES` anew."""
    machine.put(recorder, "recorder")
    kernel, today = machine.run("uname -srvm").strip(), date.today().isoformat()
    head = f"# Recorded by tests/support/netdevsim.py: {kernel}"
    lines = [f"{head}, {machine.run('ethtool --version').strip()}"]
    lines += [f"# Driver netdevsim of the same kernel, built from linux-source-6.12; commands as below. {today}"]
    lines += ["# Changed: all counters rise, it has those of eth-mac and eth-phy, and EEE (_RISING in that file)"]
    lines += ["# > is sent by agents/wire-linux.c and agents/ethtool-linux.c, < received, in hexadecimal digits"]
    for name, (driver, card, switches) in _STATES.items():
        machine.load(driver)
        machine.switch(**switches)
        lines += [f"== {name}"]
        for command in (text.replace("CARD", card) for text in _COMMANDS):
            lines += [f"$ {command}", machine.run(f"{command} 2>&1 || echo exit code $?").rstrip()]
        said = machine.run(f"/root/recorder {card}").rstrip()
        # The family's number is asked first, and each time answered alike.
        lines += [f"$ recorder {card}", said if name == next(iter(_STATES)) else said[said.index("ETHTOOL_") :]]
    private = [f"{head}, QEMU's e1000e. {today}"]
    for command in ("ethtool -i eth2", "ethtool -S eth2"):
        private += [f"$ {command}", machine.run(command).rstrip()]
    return {"netdevsim-6.12": "\n".join((*lines, "")), "e1000e-qemu": "\n".join((*private, ""))}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The kernel's answers by the name of the request, without headers, and what the agent read from them."""

    answers: dict[str, str]
    counters: dict[str, int]


def recorded(text: str) -> dict[str, Recorded]:
    """Return what was recorded of each state, by its name."""
    found = {}
    for part in text.split("\n== ")[1:]:
        name, _, rest = part.partition("\n")
        asked = re.findall(r"^(ETHTOOL_\w+)\n> \w+\n< (\w+)$", rest, re.MULTILINE)
        assert len(asked) == 4, rest
        counters = {counter: int(number) for counter, number in re.findall(r" (\w+)=(-?\d+)", rest)}
        found[name] = Recorded({request: _content(bytes.fromhex(answer)) for request, answer in asked}, counters)
    return found


def _content(message: bytes) -> str:
    """Return the error in an answer, or its attributes after that which names the card (linux/netlink.h)."""
    if message[4] == NLMSG_ERROR:
        return errno.errorcode[-int.from_bytes(message[16:20], "little", signed=True)]
    return message[20 + int.from_bytes(message[20:22], "little") :].hex()


def counters_by_ethtool(machine: Machine) -> dict[str, int | None]:
    """Return what ethtool(8) shows of `CARD`; None for what it does not show."""
    pause = json.loads(machine.run(f"ethtool -I --json -a {CARD}"))[0]["statistics"]
    fec = json.loads(machine.run(f"ethtool -I --json --show-fec {CARD}"))[0]["statistics"]
    groups = json.loads(machine.run(f"ethtool --json -S {CARD} --groups eth-phy eth-mac"))[0]
    return {
        "rx_pause": pause.get("rx_pause_frames"),
        "tx_pause": pause.get("tx_pause_frames"),
        **{name: groups.get(group, {}).get(counter) for name, (group, counter) in _STANDARD.items()},
        "fec_corrected": fec["corrected_blocks"]["total"],
        "fec_uncorrectable": fec["uncorrectable_blocks"]["total"],
    }
