"""Who uses rigctl, for those who read it later."""

import getpass
import os
import socket


def account() -> str:
    """`anna@lab7`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
