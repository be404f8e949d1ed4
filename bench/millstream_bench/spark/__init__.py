"""Millstream against Spark's own operators, on the same files: throughput, state and latency."""
