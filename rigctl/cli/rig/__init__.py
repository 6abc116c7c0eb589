"""`rigctl rig` and `rigctl agent`."""
