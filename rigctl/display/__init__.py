"""The rig's screen: the published state of a run, its layout as lines, and the loop that draws the lines."""
