"""Generators of the demos. Streams name them as connectors (`BESIDE` in `millstream/registry.py`)."""
