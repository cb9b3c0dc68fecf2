"""Policies asked in Spark SQL, in a closed room of their own."""
