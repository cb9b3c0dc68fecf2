"""Proves a plan: computes rules, end, values and lower bounds again, and takes nothing but prices from the plan.

It imports the model, and nothing of the planner, whose faults cannot hide here. Read `check` first.

What is proven: that no placement which keeps every rule is better in the first objective; that none which is as good
there is better in the second; and so on. Leaders come after replicas: they are the best for this plan's replica sets.
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

The last three lines no longer hold x: they bound every placement. Where the bound equals the plan's value, the plan is
best. Then equality holds in each line, so whatever else is best takes only sets and counts that are cheapest at these
prices, and the next objective is bounded among those.

Counts of each topic have prices and costs of their own, which are added in the same way; what explicit assignments copy
is a constant.

    example: p has one replica, on broker 1, and may be on 1, 2 or 3; a copy costs 5; price[1] = 7, the others 0
             the least of its bracket is min(0 + 7, 5 + 0, 5 + 0) = 5: at these prices moving it is worth the copy

Why no solver: finding good prices needs one, and checking them does not. At given prices the partitions no longer
depend on one another: each has a cheapest set by itself, found greedily because its rules are bounds one inside the
other. What is left is one pass of sums over whole numbers. And the prices need not be believed: no prices give a bound
above the truth. A later objective is bounded among what the prices of the earlier ones leave, and so counts only once
those are proved.
"""
