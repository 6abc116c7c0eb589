"""`rigctl nightly`."""
