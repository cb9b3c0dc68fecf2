"""Turns what was read of a cluster into findings: each with a stable code, what it is about, and what to do next."""
