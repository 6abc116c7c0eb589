"""Conditions: named sets of host settings. A record of each key translates values for the agent, and answers back."""
