"""Imported by every Python process that has this folder on its path, to replay runs if a script is set.

The engine is replaced after `rigctl.runner.run` is imported, so that other commands import nothing more.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _AfterImport:
    """Import hook that replaces the engine once `rigctl.runner.run` has been executed."""

    NAME = "rigctl.runner.run"

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        if name != self.NAME:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            import replay

            replay.install(os.environ)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


if "RIGCTL_REPLAY" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
