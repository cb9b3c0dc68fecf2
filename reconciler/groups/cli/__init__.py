"""Declares one verb of `groups` a file, each loaded when it runs."""
