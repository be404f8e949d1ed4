"""Binds the bodies of user-defined aggregates to programs."""
