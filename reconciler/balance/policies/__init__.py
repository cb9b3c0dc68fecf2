"""Asks policies in Spark SQL, in a closed room of their own."""
