"""Tables that streams write."""
