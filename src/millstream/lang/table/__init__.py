"""Statements that write tables, and views."""
