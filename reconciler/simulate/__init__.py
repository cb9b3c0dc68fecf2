"""Computes the state after a request, as Kafka's KRaft controller does, and the bytes that followers copy over time."""
