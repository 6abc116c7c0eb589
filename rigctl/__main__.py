"""`python -m rigctl` is `rigctl`."""

from rigctl.cli.app import main

main()
