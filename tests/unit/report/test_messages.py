"""Ping-pong and blast in the form of a lab's page: its table, its findings, its chart."""
