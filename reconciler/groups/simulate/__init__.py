"""Computes who would read what as members and topics change, and how evenly; pure."""
