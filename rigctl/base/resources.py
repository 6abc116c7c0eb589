"""Files that come with rigctl: scenarios, page templates, JSON Schemas, agent binaries.

In the checkout `rigctl/bundled/` holds links to the top-level folders; in the wheel the same paths are real files.
Nothing is looked up relative to the checkout or to the working directory.
"""

from pathlib import Path
from typing import Literal

_BUNDLED = Path(__file__).parents[1] / "bundled"


def scenarios() -> Path:
    """Return the folder of bundled scenarios; its `rigs/` holds the bundled rig files."""
    return _BUNDLED / "scenarios"


def templates() -> Path:
    """Return the folder of page templates and the style sheet."""
    return _BUNDLED / "templates"


def schemas() -> Path:
    """Return the folder of JSON Schemas: of scenario and rig files, for editors, and of what `--json` prints."""
    return _BUNDLED / "schemas"


def modeline(kind: Literal["scenario", "rig"]) -> str:
    """Return the first line of a file, by which an editor finds its schema as installed: nothing is fetched.

    The YAML language server reads the schema up to the next blank: a path, or a URI if the path has blanks.
    """
    path = (schemas() / f"{kind}.schema.json").resolve()
    return f"# yaml-language-server: $schema={path if len(str(path).split()) == 1 else path.as_uri()}\n"


def agents() -> Path:
    """Return the folder of agent binaries, named `rigctl-agent-MACHINE`, as `rigctl-agent-x86_64`."""
    return _BUNDLED / "agents"
