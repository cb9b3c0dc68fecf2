"""A cluster in, requests out: one port, and behind it the Kafka client and a simulated cluster."""
