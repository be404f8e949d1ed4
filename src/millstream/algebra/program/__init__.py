"""Programs: the bodies of user-defined aggregates, bound to names and types. The binder builds them from SQL, and the
runtime compiles them to Python. They are part of plans, so workers need no registry of aggregates."""
