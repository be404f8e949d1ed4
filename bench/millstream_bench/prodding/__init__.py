"""Experiments with early answers: accuracy, latency, overhead, bursts."""
