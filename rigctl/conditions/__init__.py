"""Conditions (host settings): one record per key, from the text in a scenario to the agent's order and back."""
