"""Holds the values of the wing: the balance of clusters, and what was wrong with samples."""
