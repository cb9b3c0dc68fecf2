"""Runs a plan: observe, decide, do one thing, record; stopping it anywhere and starting again is the normal path."""
