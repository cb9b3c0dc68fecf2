"""What the wing tells: the balance of clusters, and what was wrong with samples."""
