"""Secrets in URLs: hide them in messages and logs, and find the parameters that have them.

A password in a URL may hold any character, because people write it as it is. So everything up to the last @ is hidden.
"""

import re
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import urlsplit

from rigctl.base.texts import printable

_CREDENTIALS: Final = re.compile(r"(://[^:]*:)(.*)(?=@)", re.DOTALL)
_PATH: Final = re.compile(r"(?i)(https?://[^\s/?#]*/)([^\s'\"]+)")  # a webhook's path is its secret
_PARAMETERS: Final = re.compile(r"(://[^\s?]*\?)(.+)", re.DOTALL)
_PAIR: Final = re.compile(r"(?i)(\b\w*(?:password|passwd|pwd)\s*=\s*)(.+)", re.DOTALL)  # a connection string of libpq
_PASSWORD: Final = re.compile(
    r"pass(wd|word|phrase|code)?|pwd|\w*(password|passwd|passphrase|secret)|scram_\w*key|conninfo|dsn", re.IGNORECASE
)
_SHOWN: Final = 200


def hide_secrets(text: str, hide: Callable[[str], str] = lambda _: "***") -> str:
    """Return `text` with all that may be secret in its URLs replaced by `hide`: rather too much than too little.

    >>> hide_secrets("postgresql://anna:my@word@db/rigctl?sslpassword=x")
    'postgresql://anna:***@db/rigctl?***'
    >>> hide_secrets("https://chat.example.org/hooks/x1?token=y")
    'https://chat.example.org/***'
    >>> hide_secrets("host=db user=anna password='my word'")
    'host=db user=anna password=***'
    """
    for pattern in (_CREDENTIALS, _PATH, _PARAMETERS, _PAIR):
        text = pattern.sub(lambda found: found[1] + hide(found[2]), text)
    return text


def origin(address: str) -> str:
    """Return scheme, host and port of a URL; the rest may be secret."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return printable(f"{parts.scheme}://{parts.hostname}{port}")[:_SHOWN] if parts.hostname else "nowhere"


def is_password(name: str, known: Collection[str] = ()) -> bool:
    """Tell whether a parameter is `known` to be a password, or named like one; letters in any case."""
    return name.lower() in known or _PASSWORD.fullmatch(name) is not None
