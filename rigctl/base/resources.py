"""Files that come with rigctl: scenarios, page templates, JSON Schemas, agent binaries.

In the checkout `rigctl/bundled/` holds links to the top-level folders; in the wheel the same paths are real files.
Nothing is looked up relative to the checkout or to the working directory.
"""

from pathlib import Path
from typing import Literal

_BUNDLED = Path(__file__).parents[1] / "bundled"


def scenarios() -> Path:
    """The folder of bundled scenarios; its `rigs/` holds the bundled rig files."""
    return _BUNDLED / "scenarios"


def templates() -> Path:
    """The folder of page templates and the style sheet."""
    return _BUNDLED / "templates"


def schemas() -> Path:
    """The folder of JSON Schemas: of scenario and rig files, for editors, and of what `--json` prints."""
    return _BUNDLED / "schemas"


def modeline(kind: Literal["scenario", "rig"]) -> str:
    """The first line of a file, by which an editor finds its schema: as installed, so that nothing is fetched.

    The YAML language server takes what follows `$schema=` up to the next blank: a path, or where that has blanks a URI.
    """
    path = (schemas() / f"{kind}.schema.json").resolve()
    return f"# yaml-language-server: $schema={path if len(str(path).split()) == 1 else path.as_uri()}\n"


def agents() -> Path:
    """The folder of agent binaries, named `rigctl-agent-MACHINE` (`x86_64`, `aarch64`, `armv7`, `armv6`, `riscv64`)."""
    return _BUNDLED / "agents"
