"""Compares desired with observed, and resolves the rules that each topic's replicas must keep."""
