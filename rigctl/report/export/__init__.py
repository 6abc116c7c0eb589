"""Exports of runs: rows in several formats, OpenMetrics figures, JUnit cases."""
