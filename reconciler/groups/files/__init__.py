"""Reads and writes the files of the wing: scenarios and tables of offsets."""
