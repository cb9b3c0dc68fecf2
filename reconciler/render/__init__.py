"""Shows one value in many views: text, Markdown for a review, JSON for programs, files for Kafka's own tools.

Each module offers functions from model values to text, and decides nothing. Read `rows` first: it folds a plan into
the lines that a reviewer reads, and text and Markdown only lay them out.
"""
