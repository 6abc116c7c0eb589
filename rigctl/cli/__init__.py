"""The command line: `app` lists and runs the commands; `errors` turns errors into exit codes."""

import gc

gc.set_threshold(300_000, 50, 100)  # collect garbage rarely, because rigctl makes few reference cycles
