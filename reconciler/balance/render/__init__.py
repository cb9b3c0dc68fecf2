"""Prints one balance report as text, Markdown and a page."""
