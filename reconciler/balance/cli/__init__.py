"""The verbs `collect`, `loads` and `balance` on the command line."""
