"""Desired x observed -> changes; and the rules that each topic's replicas must keep."""
