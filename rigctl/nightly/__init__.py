"""Work without an operator: nights, and news confirmed by a second measurement."""
