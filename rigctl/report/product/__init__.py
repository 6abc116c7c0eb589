"""Pages that a company publishes of a run: a theme, a claim, a fragment for a shop's page, pictures."""
