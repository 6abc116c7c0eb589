"""Start the command line for `python -m rigctl`."""

from rigctl.cli.app import main

main()
