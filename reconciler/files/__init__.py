"""Disk in, disk out: YAML with line and column, schemas, snapshots, saved plans, run journals."""
