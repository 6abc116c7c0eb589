"""Messages to and from the agent (docs/reference/agent-protocol.md, version 5), as frozen records.

Times in these records are on the node's clock; `rigctl.runner.outcome` converts them to the controller's clock.
"""
