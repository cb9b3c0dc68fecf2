"""Reads topic files of other tools as topics of ours, and tells what of them has no counterpart here."""
