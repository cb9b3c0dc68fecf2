"""Holds the product's words as values: immutable, comparable, free of any library."""
