"""The rig's screen: what a run publishes, how it is laid out, the loop that draws it."""
