"""Validate a YAML document with a pydantic model; errors get line, column and rigctl's wording."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rigctl.yamlfile.document import (
    MOST_FOUND,
    SECRET_KEYS,
    Mistake,
    MistakesError,
    Path,
    YamlDocument,
    sort_mistakes,
    suggestion,
)
from rigctl.yamlfile.fields import describe

_Model = TypeVar("_Model", bound=BaseModel)
_ADVICE: Final = (
    "passwords are not kept in files. Leave it out: load a key into ssh-agent (ssh-add), or name one with "
    "key: ~/.ssh/id_ed25519."
)
_SHAPES: Final = {
    "list_type": "a list",
    "tuple_type": "a list",
    "too_long": "fewer values",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
}


def validate(document: YamlDocument, model: type[_Model], before: Sequence[Mistake] = ()) -> _Model:
    """Return the document as `model`. Raise `MistakesError` with mistakes of options (`before`) and of the file."""
    valid, found = read_model(document, model)
    if valid is None or before or found:
        raise MistakesError([*before, *sort_mistakes(found)])
    return valid


def read_model(document: YamlDocument, model: type[_Model]) -> tuple[_Model | None, list[Mistake]]:
    """Return the document as `model`, or None if a key is wrong, and all mistakes of the file."""
    found = list(document.mistakes)
    try:
        return model.model_validate(document.data), found
    except ValidationError as error:
        found += [_mistake(document, model, detail) for detail in error.errors(include_url=False)[:MOST_FOUND]]
    return None, found


def _mistake(document: YamlDocument, model: type[BaseModel], detail: ErrorDetails) -> Mistake:
    path: Path = detail["loc"]
    if path and path[-1] == "[key]":
        return document.mistake(path[:-1], _sentence(_own_words(detail, path[:-1])), at_key=True)
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    section = _section(model, path[:-1])
    if detail["type"] == "extra_forbidden":
        if name.lower() in SECRET_KEYS:
            what = f'key "{name}": {getattr(section, "SECRET_ADVICE", _ADVICE)}'
        else:
            what = f'unknown key "{name[:64]}".{suggestion(name, list(section.model_fields))}'
        return document.mistake(path, what, at_key=True)
    if detail["type"] == "missing":
        field = section.model_fields.get(name)
        purpose = f" Expected: {_sentence(field.description)}" if field is not None and field.description else ""
        return document.mistake(path[:-1], f'"{name}" is missing.{purpose}', at_key=True)
    return document.mistake(path, _sentence(_own_words(detail, path)))


def _own_words(detail: ErrorDetails, path: Path) -> str:
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, Exception):
        return str(raised)
    name = next((part for part in reversed(path) if isinstance(part, str)), "value")
    return f"{name}: expected {_SHAPES.get(detail['type'], 'something else')}, found {describe(detail['input'])}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _section(model: type[BaseModel], path: Path) -> type[BaseModel]:
    """Return the model of the mapping at `path`; names of nodes and list indices in the path are skipped."""
    for part in path:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        model = next(_models_in(field.annotation), model) if field is not None else model
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
