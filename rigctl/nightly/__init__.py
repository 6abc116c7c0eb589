"""Unattended work: nightly runs, and a second measurement that confirms their news."""
