"""Does what each verb does, in a straight line: read, compute, write. Another program would call these functions."""
