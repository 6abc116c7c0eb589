"""YAML files with line and column: read within bounds, checked against a schema, all mistakes told at once.

Knows nothing of scenarios or rigs. `find` and `read_document` open a file, `validated` checks its shape,
`Document.mistake` points at a place in it, `MistakesError` tells all that was found.
"""

from rigctl.yamlfile.compose import parse_document
from rigctl.yamlfile.document import Document, Path
from rigctl.yamlfile.files import MAX_BYTES, find, find_bundled, read_document, read_text
from rigctl.yamlfile.mistakes import Mistake, MistakesError, suggestion
from rigctl.yamlfile.validate import kind, validated

__all__ = [
    "MAX_BYTES",
    "Document",
    "Mistake",
    "MistakesError",
    "Path",
    "find",
    "find_bundled",
    "kind",
    "parse_document",
    "read_document",
    "read_text",
    "suggestion",
    "validated",
]
