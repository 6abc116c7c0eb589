"""YAML files, read within bounds and checked against a model; all mistakes are reported with line and column."""

from rigctl.yamlfile.document import MOST_FOUND, Document, Mistake, MistakesError, Path, Span, in_order, suggestion
from rigctl.yamlfile.fields import FieldError, Section, describe
from rigctl.yamlfile.read import MAX_BYTES, find, find_bundled, parse_document, read_document, read_text
from rigctl.yamlfile.validate import validated
