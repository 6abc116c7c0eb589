"""The command line: `app` lists and runs the commands; `errors` turns errors into exit codes."""

import gc

gc.set_threshold(300_000, 50, 100)  # imports and records make fewer objects than this, and hardly any cycles
