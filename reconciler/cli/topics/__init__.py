"""Declares one verb of `topics` a file, each loaded when it runs."""
