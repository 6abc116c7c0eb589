"""Unattended work: nightly runs, and a second measurement that confirms the changes found in a run."""
