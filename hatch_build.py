"""Builds the agents into a wheel, so that an installed rigctl carries them. An editable install builds nothing."""

import importlib.util
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentsHook(BuildHookInterface[Any]):
    """All five agents where ziglang is there, else the one for this machine, with a word about it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from rigctl.remote.build import TARGETS, build, host_machine

        complete = importlib.util.find_spec("ziglang") is not None
        if not complete:
            self.app.display_warning("ziglang is not there: this wheel carries the agent for this machine only")
        build(TARGETS if complete else [host_machine()])
        build_data["pure_python"] = True  # they are data: rigctl itself runs anywhere
