"""Runs the verbs, one file each: read, compute, write."""
