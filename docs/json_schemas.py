"""JSON Schemas of files and of what `--json` prints: `python docs/json_schemas.py` writes them to docs/schemas."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from rigctl.cli.commands.agent import AgentsDocument
from rigctl.cli.commands.check import CheckDocument
from rigctl.cli.commands.display import DisplayDocument
from rigctl.cli.commands.expect import ExpectDocument
from rigctl.cli.commands.init import InitListDocument
from rigctl.cli.commands.nightly import StatusDocument
from rigctl.cli.commands.plan import PlanDocument
from rigctl.cli.commands.rig import RigInitDocument, RigStatusDocument
from rigctl.cli.results.compare import CompareDocument
from rigctl.cli.results.publish import PublishDocument
from rigctl.cli.results.regress import RegressDocument
from rigctl.cli.results.runs import PruneDocument, RunsDocument
from rigctl.cli.results.tag import TagDocument
from rigctl.product.theme import ThemeFile
from rigctl.report.printers.json import JsonDocument
from rigctl.rig.schema import RigFile
from rigctl.scenario.schema import ScenarioFile

FOLDER: Final = Path(__file__).parent / "schemas"
READ: Final[dict[str, type[BaseModel]]] = {
    "scenario.schema.json": ScenarioFile,
    "rig.schema.json": RigFile,
    "theme.schema.json": ThemeFile,
}
"""Files that rigctl reads."""
FILES: Final[dict[str, type]] = {
    "runs.schema.json": RunsDocument,
    "plan.schema.json": PlanDocument,
    "rig-init.schema.json": RigInitDocument,
    "show.schema.json": JsonDocument,
    "check.schema.json": CheckDocument,
    "compare.schema.json": CompareDocument,
    "regress.schema.json": RegressDocument,
    "display.schema.json": DisplayDocument,
    "nightly-status.schema.json": StatusDocument,
    "publish.schema.json": PublishDocument,
    "expect.schema.json": ExpectDocument,
    "init-list.schema.json": InitListDocument,
    "prune.schema.json": PruneDocument,
    "tag.schema.json": TagDocument,
    "rig-status.schema.json": RigStatusDocument,
    "agents.schema.json": AgentsDocument,
}


def schema_text(model: type) -> str:
    """Return the JSON Schema (draft 2020-12) of a document that rigctl prints, or of a file that it reads."""
    reads = model in READ.values()
    schema = TypeAdapter(model).json_schema(mode="validation" if reads else "serialization")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **(_without_nulls(schema) if reads else schema),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False, default=str) + "\n"


def _without_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without `"default": null`, as a file omits the key and must not have null."""
    kept = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in kept.items()}


if __name__ == "__main__":
    for name, model in (FILES | READ).items():
        (FOLDER / name).write_text(schema_text(model), encoding="utf-8")
        print(name)
