"""Optional libraries, which `pip install 'rigctl[NAME]'` adds to the base install."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from rigctl.base.errors import InputError

Extra: TypeAlias = Literal["openmetrics", "parquet", "pictures", "postgresql"]


@contextmanager
def extra(name: Extra, purpose: str) -> Iterator[None]:
    """Raise `InputError` with the `pip install` line if an import in the block fails. `purpose` begins the message.

    >>> with extra("parquet", "export"):
    ...     import no_such_library
    Traceback (most recent call last):
    rigctl.base.errors.InputError: export needs the extra parquet of rigctl: pip install 'rigctl[parquet]'
    """
    try:
        yield
    except ImportError as error:
        raise InputError(f"{purpose} needs the extra {name} of rigctl: pip install 'rigctl[{name}]'") from error
