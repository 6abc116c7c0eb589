"""YAML files, read within bounds and checked against a model; all mistakes are reported with line and column."""

from rigctl.yamlfile.compose import parse_document
from rigctl.yamlfile.document import Document, Path
from rigctl.yamlfile.files import MAX_BYTES, find, find_bundled, read_document, read_text
from rigctl.yamlfile.mistakes import Mistake, MistakesError, suggestion
from rigctl.yamlfile.validate import kind, validated
