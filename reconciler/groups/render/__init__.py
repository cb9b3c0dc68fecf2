"""Writes the values of the wing as text, Markdown and JSON; decides nothing."""
