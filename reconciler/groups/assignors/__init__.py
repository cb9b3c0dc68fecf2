"""Assigns partitions to members as Kafka's own assignors do, one algorithm a file; pure."""
