"""Pages about a product that a company publishes: theme, claim, fragment for a shop's page, and pictures."""
