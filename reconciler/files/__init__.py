"""Reads and writes files: YAML with line and column, schemas, snapshots, saved plans, journals. Sends to webhooks."""
