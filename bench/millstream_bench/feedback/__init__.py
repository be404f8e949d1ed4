"""Feedback: what being able to receive it costs, what sending it costs, and what it saves."""
