"""The JSON Schemas in docs/ are up to date, accept what rigctl accepts, and help an editor. The pages likewise."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import json_schemas
import jsonschema
import pytest
import yaml

from rigctl.base import resources
from rigctl.rig import allocation
from rigctl.rig.load import rig_of
from rigctl.rig.schema import NodeSection, RigFile
from rigctl.scenario.load import Overrides, load_plan
from rigctl.scenario.schema import ScenarioFile
from rigctl.settings import SETTINGS
from rigctl.yamlfile.read import parse_document

DOCS = Path(__file__).parents[3] / "docs"
SCENARIOS = sorted(resources.scenarios().glob("*.yaml"))
KSELFTEST = {"NETIF": "eth0", "LOCAL_V4": "192.0.2.1", "REMOTE_V4": "192.0.2.2"}
KSELFTEST |= {"REMOTE_TYPE": "netns", "REMOTE_ARGS": "peer"}
RIGS = sorted((resources.scenarios() / "rigs").glob("*.yaml"))


def examples(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@cache
def validator(model: Any) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(json_schemas.schema_text(model)))


def errors(model: Any, text: str) -> list[str]:
    return [error.message for error in validator(model).iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("name", json_schemas.READ)
def test_the_file_in_docs_is_a_valid_schema_and_what_the_models_make(name: str) -> None:
    text = (DOCS / "schemas" / name).read_text()
    assert text == json_schemas.schema_text(json_schemas.READ[name]), "run: make pages"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("path", [*SCENARIOS, *RIGS], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_bundled_file_is_accepted(path: Path) -> None:
    assert errors(RigFile if path.parent.name == "rigs" else ScenarioFile, path.read_text()) == []


@pytest.mark.parametrize("text", examples("reference/scenario.md"))
def test_every_scenario_of_its_page_is_taken_and_loads(text: str, tmp_path: Path) -> None:
    assert errors(ScenarioFile, text) == []
    (tmp_path / "t.yaml").write_text(text)
    assert load_plan(str(tmp_path / "t.yaml"), Overrides())[0].cells


@pytest.mark.parametrize("text", examples("reference/rig.md"))
def test_every_rig_of_its_page_is_taken_and_loads(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert errors(RigFile, text) == []
    if "slurm:" in text:
        members = [allocation.Member("n1", "10.0.0.1"), allocation.Member("n2", "10.0.0.2")]
        monkeypatch.setattr(allocation, "members_here", lambda srun: members)
    for name, value in KSELFTEST.items():
        monkeypatch.setenv(name, value)
    assert len(rig_of(parse_document("r.yaml", text), tmp_path / "r.yaml").nodes) >= 2


def test_what_rigctl_refuses_an_editor_underlines() -> None:
    beside = ("titel: x", "matrix: {window: [64Q]}", "matrix: {mss: []}", "include: [{parallel: 0}]", "test: sctp")
    scenarios = [f"pairs: [pi1 -> pi2]\n{line}" for line in (*beside, "parallel: 0")] + [
        "title: x",
        "pairs: [pi1 - pi2]",
    ]
    assert [text for text in scenarios if not errors(ScenarioFile, text)] == []
    nodes = ("a: {address: x, password: y}", "'a b': {address: x}", "a: {address: x, port: 0}")
    rigs = [f"nodes: {{{node}, b: {{address: z}}}}" for node in nodes] + ["nodes: {a: {address: x}}"]
    assert [text for text in (*rigs, "virtual: docker\nnodes: {a: , b: }") if not errors(RigFile, text)] == []


def test_every_key_has_a_description_and_is_on_its_reference_page_like_every_axis() -> None:
    models = (ScenarioFile, RigFile, NodeSection)
    assert [key for model in models for key, field in model.model_fields.items() if not field.description] == []
    scenario, rig = ((DOCS / page).read_text() for page in ("reference/scenario.md", "reference/rig.md"))
    settings = (DOCS / "reference" / "columns.md").read_text()
    keys = [key for key in ScenarioFile.model_fields if key not in SETTINGS]
    assert [key for key in keys if f"| `{key}`" not in scenario] == []
    assert [name for name in SETTINGS if f"| `{name}`" not in settings] == []
    assert [key for key in RigFile.model_fields if f"| `{key}`" not in rig] == []
    assert [key for key in NodeSection.model_fields if f"`{key}`" not in rig] == []


def test_the_page_shows_messages_as_they_are(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "scenario.md").read_text()
    path = tmp_path / "gigablox.yaml"
    path.write_text("rig: gigablox\npairs: pi1 -> pi2\n\n\n\nmatrix:\n  window: [64Q, 200K]\n")
    with pytest.raises(Exception, match="64Q") as caught:
        load_plan(str(path), Overrides(sets=("mss=80",)))
    for line in str(caught.value).replace(f"{tmp_path}/", "").splitlines():
        assert line in page
