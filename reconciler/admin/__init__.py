"""Reads a cluster and writes requests to it: one port, and behind it the Kafka client and a simulated cluster."""
