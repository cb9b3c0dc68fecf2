"""Computes with Spark: one session, and one module a transformation, from samples to figures."""
