"""The rig's screen: the state that a run publishes, its layout as lines, and the loop that draws it."""
