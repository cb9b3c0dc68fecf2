"""One file a verb, a straight line each: read -> compute -> write. What another program would call."""
