"""rigctl: an orchestrated multi-host network test rig. As a library: docs/reference/python.md."""

from typing import TYPE_CHECKING, Any

from rigctl.base.version import __version__ as __version__

if TYPE_CHECKING:
    from rigctl.api import (
        InputError,
        NodeError,
        RigctlError,
        RigError,
        Run,
        Scenario,
        load,
        open_run,
        run,
        runs,
    )

__all__ = [
    "InputError",
    "NodeError",
    "RigError",
    "RigctlError",
    "Run",
    "Scenario",
    "load",
    "open_run",
    "run",
    "runs",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 — PEP 562
    """Return a name of `rigctl.api`, which is imported at the first use: `rigctl --version` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rigctl import api

    return getattr(api, name)
