"""Declares the verbs `collect`, `loads` and `balance`."""
