"""Builds the agents into a wheel, with a list of what is in it. An editable install builds nothing."""

import importlib.metadata
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentsHook(BuildHookInterface[Any]):
    """Builds all agents with ziglang, or without it the agent for this machine, with a warning."""

    _scratch: "tempfile.TemporaryDirectory[str] | None" = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from rigctl.remote.build import TARGETS, build_binaries, host_machine

        complete = self._has_tested_compiler()
        if not complete:
            self.app.display_warning("ziglang is not there: this wheel carries the agent for this machine only")
        made = build_binaries(TARGETS if complete else [host_machine()])
        build_data["pure_python"] = True  # they are data: rigctl itself runs anywhere
        from hatch_sbom import NAME, sbom

        self._scratch = tempfile.TemporaryDirectory()
        path = Path(self._scratch.name) / NAME
        agents = [{"machine": binary.machine, "sha256": binary.sha256} for binary in made]
        compiler = importlib.metadata.version("ziglang") if complete else None
        path.write_text(sbom(self.metadata.version, agents, compiler), encoding="utf-8")
        build_data["sbom_files"] = [str(path)]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if self._scratch is not None:
            self._scratch.cleanup()

    def _has_tested_compiler(self) -> bool:
        """Tell whether ziglang is installed. Raise `RuntimeError` if it is not the version of constraints.txt."""
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
