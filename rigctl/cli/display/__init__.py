"""The rig's screen: `rigctl display` and `rigctl run --display`."""
