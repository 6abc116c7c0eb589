"""Files that come with rigctl: scenarios, page templates, JSON Schemas, agent binaries.

In a checkout, `rigctl/bundled/` has links to the top-level folders; in the wheel, the same paths are real files. The
working folder has no influence.
"""

from pathlib import Path
from typing import Literal

_BUNDLED = Path(__file__).parents[1] / "bundled"


def scenarios() -> Path:
    """Return the folder of bundled scenarios; its folder `rigs/` has the bundled rig files."""
    return _BUNDLED / "scenarios"


def bundled_names(folder: Literal["", "rigs"] = "") -> set[str]:
    """Return the names of the bundled scenarios, or of the bundled rigs."""
    return {path.stem for path in (scenarios() / folder).glob("*.yaml")}


def bundled_text(scenario: str) -> str | None:
    """Return the text of the bundled scenario of this name; None if there is none."""
    return (scenarios() / f"{scenario}.yaml").read_text("utf-8") if scenario in bundled_names() else None


def templates() -> Path:
    """Return the folder with the page templates and the style sheet."""
    return _BUNDLED / "templates"


def schemas() -> Path:
    """Return the folder of JSON Schemas, for scenario and rig files and for the output of `--json`."""
    return _BUNDLED / "schemas"


def modeline(kind: Literal["scenario", "rig"]) -> str:
    """Return the first line of a YAML file, with which editors find the installed JSON Schema."""
    # The YAML language server ends a path at a blank, so such a path is given as a URI.
    path = (schemas() / f"{kind}.schema.json").resolve()
    return f"# yaml-language-server: $schema={path if len(str(path).split()) == 1 else path.as_uri()}\n"


def agents() -> Path:
    """Return the folder of agent binaries, named by machine type as `rigctl-agent-x86_64`."""
    return _BUNDLED / "agents"
