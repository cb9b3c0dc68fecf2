"""Holds the values of the wing: groups with their lag, simulated outcomes, advice."""
