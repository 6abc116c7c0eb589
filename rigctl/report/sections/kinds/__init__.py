"""Tables and findings of each kind of test."""
