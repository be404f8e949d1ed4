"""Transcripts: streams as readable tests. `run_paths` runs files, `run_text` one transcript from a string."""

from millstream.testing.runner import Outcome, Variant, run_paths, run_text

__all__ = ["Outcome", "Variant", "run_paths", "run_text"]
