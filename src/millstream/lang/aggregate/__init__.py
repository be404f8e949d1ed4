"""User-defined aggregates: `CREATE AGGREGATE` and the statements of its blocks."""
