"""Kernel modules in the order in which they can be loaded, by what each says that it depends on (modinfo(8))."""

import lzma
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError

_DEPENDS: Final = re.compile(rb"\0depends=([^\0]*)\0")


def in_order(wanted: Iterable[str], depends: Callable[[str], Iterable[str]]) -> list[str]:
    """`wanted` and all that they depend on, each after what it depends on."""
    order: list[str] = []

    def add(name: str) -> None:
        if name not in order:
            for needed in depends(name):
                add(needed)
            order.append(name)

    for name in wanted:
        add(name)
    return order


def loadable(folder: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """The modules `wanted` of a kernel (/lib/modules/VERSION) and those they need, by name, in order of loading.

    One that the kernel itself holds (modules.builtin) is left out. Raises `RigError` where it has no such module.
    """
    files = {path.name.split(".ko")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    builtin = {
        Path(line).name.removesuffix(".ko").replace("-", "_")
        for line in (folder / "modules.builtin").read_text().splitlines()
    }
    contents: dict[str, bytes] = {}

    def depends(name: str) -> list[str]:
        if name in builtin:
            return []
        if name not in files:
            raise RigError(f"{folder}: Debian's kernel has no module {name}")
        data = files[name].read_bytes()
        contents[name] = lzma.decompress(data) if files[name].suffix == ".xz" else data
        said = _DEPENDS.search(contents[name])
        return [word.replace("-", "_") for word in said[1].decode().split(",") if word] if said else []

    return {name: contents[name] for name in in_order(wanted, depends) if name in contents}
