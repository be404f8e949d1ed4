"""Experiments and measurements. Each writes its numbers as JSON and text, and plots them."""
