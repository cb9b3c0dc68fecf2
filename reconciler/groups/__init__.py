"""Consumer groups: the assignors, one a file, what a change would do, how many partitions a topic needs."""
