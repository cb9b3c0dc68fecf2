"""One balance report as text, Markdown, JSON and a page."""
