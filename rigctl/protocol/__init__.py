"""Messages to and from the agent: docs/reference/agent-protocol.md, version 4, as frozen records.

Times stay on the *node's* clock here; `rigctl.runner.outcome` moves them to the controller's.
"""
