"""What `--json` prints: the JSON Schemas in docs/ are what the models make."""

from pathlib import Path

import json_schemas
import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", list(json_schemas.FILES))
def test_the_schema_in_docs_is_what_the_model_makes(name: str) -> None:
    assert (DOCS / "schemas" / name).read_text() == json_schemas.schema_text(json_schemas.FILES[name]), (
        "python docs/json_schemas.py"
    )


def test_each_schema_is_on_its_page() -> None:
    page = (DOCS / "reference" / "json.md").read_text()
    assert [name for name in json_schemas.FILES if f"schemas/{name})" not in page] == []
