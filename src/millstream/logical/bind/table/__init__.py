"""Binds the statements that write tables, and queries over tables alone."""
