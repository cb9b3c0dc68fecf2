"""Balances disks and network beside counts: a linear program over whole placements, made whole again, with a bound.

Where partitions weigh differently each broker is a knapsack in up to six measures: no flow, and no exact optimum at
20,000 partitions. What can be had is a good placement, a proven lower bound, and the gap between them.

The linear program (`column_generation`)
----------------------------------------
A column k is one whole placement of one partition: its replicas, its leader, its cost c[k] (bytes copied, and a little
for each copy and each new leader). Variables: y[k] from 0 to 1, how much of it is taken; s+, s-: what stays outside::

    minimise    sum c[k] y[k] + penalty * (s+ + s-)
    for each partition p:          sum of y[k] of p         = 1         (worth[p])
    for each measure m, broker b:  low[m, b] <= load of m on b by y - s+ + s- <= high[m, b]      (price[m, b])

                     partition 1     partition 2
                    k1   k2   k3     k4   k5
    partition 1      1    1    1                  = 1
    partition 2                       1    1      = 1
    disk, broker 1  40   40           25          within its band
    disk, broker 2  40        40           25     within its band

Staying put has no column: bands are counted from where partitions stand, and what is not taken stays.

Pricing (`pricing`). There are too many columns to list, so those that pay are found: at prices pi, a replica of p on b
costs its copy plus weight[p, m] * pi[m, b] over all m. The sets are bases of a matroid, so greedy finds the cheapest
set, and a wanted leader is one exchange away. A column whose cost is below worth[p] pays and joins; when none does,
the optimum over the columns is the optimum over all.

The bound. For any prices pi, not only good ones, and any placement within the bands:
cost >= sum over p of (its cheapest column at pi) + sum over m, b of (pi * base - max(pi * low, pi * high)).
The plan keeps pi as whole numbers, and `reconciler.proof` adds the same sum up again.

A cap (`bands`) is a rule beside these wishes: the most of a measure that a broker may end with. Its slack costs many
times that of a band, a band ends at it, and no exchange goes above it for a band's sake. The bound is the same: a cap
is an upper end.

Made whole (`search`, `exchanges`, `beam`)
------------------------------------------
The program splits only about one partition for each tight band. Diving settles the largest of them and solves again;
the rest is rounded. Then single exchanges, and trades of two leads, bring the bands closer, and take back every copy
that no band needs; in trades of two replicas a smaller partition moves in the place of a larger one. Leaders come last,
by order alone (`place`). Floats only guide the search; who moves is decided by whole numbers, and work is bounded by
counts of steps, never by time, so that every machine makes the same plan.
"""
