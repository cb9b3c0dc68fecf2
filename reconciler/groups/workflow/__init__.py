"""Runs one verb of `groups` a file: read, compute, write."""
