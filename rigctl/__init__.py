"""rigctl runs network tests between many hosts. docs/reference/python.md describes its use as a Python library."""

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


def __getattr__(name: str) -> Any:  # noqa: ANN401 — any attribute (PEP 562)
    """Return a name of `rigctl.api`, which is imported at its first use, so that `import rigctl` stays fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rigctl import api

    return getattr(api, name)
