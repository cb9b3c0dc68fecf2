"""Places replicas in the log dirs of their brokers (KIP-113), once it is decided which broker holds what.

A broker is a problem of its own: nothing in one changes another. `place` gathers it from the two states and makes moves
of the answer, `solve` solves it as numbers.

The objectives, one after another: log dirs that are draining end empty; the bytes above `limits.diskUse` are least;
the bytes outside of the bands of `balance.logDirs` are least; the bytes copied between log dirs are least. A replica
that comes from another broker has no home here, and costs nothing wherever it goes.

With sizes that differ it is a knapsack for each log dir, so no flow, and no exact optimum for thousands of replicas.
But a bound is simple, and close: what a log dir has above its band must leave it, what it lacks must come. A greedy way
moves the largest replicas that are not more than is needed, and with a few hundred replicas mostly ends within a
thousandth of that bound. Of few replicas all places are tried that could be better. In between CP-SAT looks on, for so
much work as is the same on every machine. What stays between value and bound is told.
"""
