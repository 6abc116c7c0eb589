"""Store: runs and what was measured in them, in SQLite by default, in PostgreSQL by URL. See docs/reference/store.md.

A repetition is committed when it is measured; ceilings, efficiency and limits are *not* stored but derived on reading.
"""

from rigctl.store.errors import NoStoreError, SilentStoreError
from rigctl.store.open import default_path, open_store
from rigctl.store.store import Store

__all__ = ["NoStoreError", "SilentStoreError", "Store", "default_path", "open_store"]
