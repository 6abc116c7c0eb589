"""YAML files, read within bounds and checked against a model; all mistakes are reported with line and column.

`read` and `validate` are imported where a file is read: most commands read none.
"""

from rigctl.yamlfile.document import MOST_FOUND, Document, Mistake, MistakesError, Path, Span, in_order, suggestion
from rigctl.yamlfile.fields import FieldError, Section, describe
