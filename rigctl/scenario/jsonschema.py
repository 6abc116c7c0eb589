"""JSON Schemas of scenario and rig files, for editors.

`python -m rigctl.scenario.jsonschema [FOLDER]` writes them.
FOLDER is `docs/schemas` where none is given; the package carries what is there, and a test holds it to this module.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from rigctl.rig.sections import RigFile
from rigctl.scenario.schema import ScenarioFile

FILES: Final[dict[str, type[BaseModel]]] = {"scenario.schema.json": ScenarioFile, "rig.schema.json": RigFile}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what a file may hold, not of what is made of it."""
    schema = model.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_nulls(schema)}


def schema_text(model: type[BaseModel]) -> str:
    return json.dumps(schema_of(model), indent=2, ensure_ascii=False, default=str) + "\n"


def _without_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """No `"default": null`: a key that is left out is not a key that says null."""
    kept = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in kept.items()}


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else "docs/schemas")
    if not folder.is_dir():
        print(f"{folder}: there is no such folder", file=sys.stderr)
        return 2
    for name, model in FILES.items():
        (folder / name).write_text(schema_text(model), encoding="utf-8")
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
