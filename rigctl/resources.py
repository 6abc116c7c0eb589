"""Files that come with rigctl: scenarios, page templates, agent binaries.

In the checkout `rigctl/bundled/` holds links to the top-level folders; in the wheel the same paths are real files.
Nothing is looked up relative to the checkout or to the working directory.
"""

from pathlib import Path

_BUNDLED = Path(__file__).parent / "bundled"


def scenarios() -> Path:
    """The folder of bundled scenarios; its `rigs/` holds the bundled rig files."""
    return _BUNDLED / "scenarios"


def templates() -> Path:
    """The folder of page templates and the style sheet."""
    return _BUNDLED / "templates"


def agents() -> Path:
    """The folder of agent binaries, named `rigctl-agent-MACHINE` (`x86_64`, `aarch64`, `armv7`, `armv6`, `riscv64`)."""
    return _BUNDLED / "agents"
