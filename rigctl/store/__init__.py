"""Stores runs and their measurements, in SQLite by default or PostgreSQL by URL. See docs/reference/store.md.

Each repetition is committed once it is measured. The ceiling (the highest goodput that the link allows), the efficiency
and the limit (the bottleneck) of a test are not stored but computed on reading.
"""

from rigctl.store.errors import NoStoreError, SilentStoreError
from rigctl.store.open import default_path, open_store
from rigctl.store.store import Store

__all__ = ["NoStoreError", "SilentStoreError", "Store", "default_path", "open_store"]
