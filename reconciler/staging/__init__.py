"""Moves -> stages: chains of safe steps, packed tightly, with elections, estimates and rollback."""
