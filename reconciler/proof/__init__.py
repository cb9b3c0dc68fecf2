"""Proves a plan: computes rules, end, values and lower bounds again, and takes nothing but prices from the plan.

It imports values of the model alone, no module that computes for the planner, whose faults cannot hide here.
Read `check` first; `objectives` says what a proof must show.

What is proved: no placement that keeps every rule is better in the first objective; none that is as good there is
better in the second; and so on. Leaders come after replicas: they are the best for this plan's replica sets.
For measured loads: no placement within the bands copies less than the bound, which may be below what the plan copies.

By which inequality: weak duality. Let x be any legal placement, n[b] the replicas that broker b has in the end,
fixed[b] those of them that no plan chooses, f[b](n) what the balance makes of n (its square over capacity, or what is
outside its band, or nothing). For any numbers price[b]::

    cost(x) = sum over p of copies(p, x[p])                        + sum over b of f[b](n[b])
            = sum over p of (copies(p, x[p]) + price of x[p])      + sum over b of (f[b](n[b]) - price[b] * n[b])
                            + sum over b of price[b] * fixed[b]     (price added on the left, taken off on the right)
           >= sum over p of the least of the first bracket over legal sets                  (`cheapest`, greedy)
            + sum over b of the least of the second over counts that are possible           (`counts`, convex)
            + sum over b of price[b] * fixed[b]

The last three lines no longer hold x: they bound every placement. If the bound equals the plan's value, the plan is
best. Then equality holds in each line, so whatever else is best takes only sets and counts that are cheapest at these
prices, and the next objective is bounded among those. Counts of each topic have prices and costs of their own, which
are added in the same way; what explicit assignments copy is a constant.

A worked example: brokers 1, 2 and 3, partitions p0 to p4 of one replica and of 1, 2, 3, 4 and 5 GiB, `replicas: even`::

                before          after
    broker 1    p0 p1 p2 p3     p2 p3
    broker 2    p4              p4 p0
    broker 3                    p1

    replicas balance   value 2^2 + 2^2 + 1^2 = 9; the prices are 3, 3, 3
        partitions     each pays 3 wherever it is: 15
        brokers        n^2 - 3n is least, -2, at n = 1 and at n = 2: -6
        bound          15 - 6 = 9: no counts are more even, and a plan as even has 1 or 2 replicas on each broker

    bytes              value 1 + 2 = 3; the prices are 2, 0, 0
        partitions     the lesser of 2 for staying on broker 1 and its size for a copy: 1 + 2 + 2 + 2; p4 stays for 0: 7
        brokers        broker 1 takes off 2 for each replica, of which it has at most 2: -4
        bound          7 - 4 = 3: no plan that is as even copies less

Without the first level broker 1 might have all five replicas and take off 10: the bound would be -3, and say nothing.

Why no solver: finding good prices needs one, and checking them does not. At given prices the partitions no longer
depend on one another: each has a cheapest set by itself, found greedily because its rules are bounds one inside the
other. What is left is one pass of sums over whole numbers. And the prices need not be believed: no prices give a bound
above the truth. A later objective is bounded among what the prices of the earlier ones leave, and so counts only once
those are proved.
"""
