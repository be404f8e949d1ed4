"""Measurements of joins that purge: `millstream bench joins`."""
