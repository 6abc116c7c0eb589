"""Conditions: one record per key, from a scenario's text to the agent's order and back."""
