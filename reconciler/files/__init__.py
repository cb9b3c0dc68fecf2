"""Reads and writes files: YAML with line and column, schemas, snapshots, saved plans, run journals; sends messages to webhooks."""
