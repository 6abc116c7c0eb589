"""Read YAML files within limits and validate them; all mistakes are reported with line and column.

`read` and `validate` are imported inside functions, because most commands read no file.
"""

from rigctl.yamlfile.document import (
    MOST_FOUND,
    Mistake,
    MistakesError,
    Path,
    Span,
    YamlDocument,
    did_you_mean,
    sort_mistakes,
    suggestion,
)
from rigctl.yamlfile.fields import FieldError, YamlSection, describe
