"""Exports runs: rows in several formats, figures as OpenMetrics, verdicts as JUnit cases."""
