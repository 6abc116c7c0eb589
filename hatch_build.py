"""Builds the agents into a wheel, so that an installed rigctl carries them. An editable install builds nothing."""

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentsHook(BuildHookInterface[Any]):
    """All agents where ziglang is there, else the one for this machine, with a word about it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from rigctl.remote.build import TARGETS, build, host_machine

        complete = self._has_tested_compiler()
        if not complete:
            self.app.display_warning("ziglang is not there: this wheel carries the agent for this machine only")
        build(TARGETS if complete else [host_machine()])
        build_data["pure_python"] = True  # they are data: rigctl itself runs anywhere

    def _has_tested_compiler(self) -> bool:
        """Whether ziglang is there. Raises `RuntimeError` where it is not the version the agents were tested with."""
        try:
            found = importlib.metadata.version("ziglang")
        except importlib.metadata.PackageNotFoundError:
            return False
        pinned = re.search(r"^ziglang==(\S+)$", (Path(self.root) / "constraints.txt").read_text(), re.MULTILINE)
        if pinned is None or found != pinned[1]:
            tested = pinned[1] if pinned else "a version that constraints.txt names"
            raise RuntimeError(
                f"agents are built with ziglang {tested}, found {found}: pip install -c constraints.txt ziglang"
            )
        return True
