"""Programs of user-defined aggregates, compiled to Python."""
