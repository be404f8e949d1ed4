"""Generators of synthetic streams: their elements are a pure function of the options and the event numbers."""
