"""One file a verb: read, compute, write."""
