"""From what was read of a cluster to findings: each with a stable code, what it is about, and what to do next."""
