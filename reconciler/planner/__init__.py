"""Decides who holds and who leads each partition: the least movement that keeps every rule and reaches the balance.

How a placement is found, and where:

    place            values in, moves and a proof out; `conflicts` refuses what no placement keeps, `reasons` tells why
    to_place         which partitions are placed, as columns; `placement_task` makes arrays of them and of their rules
    replicas, leaders    the objectives, one after another, each solved by `objectives` (costs, or counts made even)
    rows             what they all hold: rules by class, rows of partitions, the choices left, what is decided
    sparse_flow      solves one objective: `start` (first sets, likely rows), `row_flow` (the flow over few rows),
                     `goal` and `cheapest_sets` (a cheaper set for any row?), `face` (what all optima share)
    flow             minimum-cost flow of a network in layers, and its prices; `pieces` are what a broker's count costs

This page is the mathematics that they share. Balancing measured loads is another problem: see `load_balance`. Where
a disk would be too full: `space`. What lies in which log dir of a broker: `log_dirs`. A plan that is refused:
`remedies`. One partition of a plan: `explain`.

The flow
--------
Variables: x[p, b], 1 where partition p has a replica on broker b. Replicas flow from partitions to one sink::

    partition --need[p]--> rack --x[p, b]: 0..1--> cell --low..high--> broker --low..high--> sink
                                                    (topic t on broker b; only where topics are balanced)

Constraints: need[p] replicas leave p; each rack takes from low to high of them; the arc from it into broker b, or b's
cell, carries one at the most; the arc to the sink carries what the broker gets in all. A rack's arc is the rack rule,
an arc that is not there is a broker that is not allowed, a bound of a sink's arc is the balance, or a limit. Such a
matrix is totally unimodular: the best flow is whole, so the exact optimum over the integers comes out of a linear
program, and nothing is rounded.

Objectives, one after another
-----------------------------
Of replicas: balance of brokers, balance of topics, bytes, copies (before bytes where a size is not known), a replica in
a rack that is to lead, evenness where `even` was not asked for, fewest lagging replicas kept, most leaders kept, turns
for new partitions. Of leaders:
balance of brokers, balance of topics, fewest changed, leaders that have the data, evenness, turns. Each is a cost on
the same arcs: bytes of p on brokers that p is not on; or, for `even`, (n + 1)^2 - n^2 = 2n + 1 on the broker's (n+1)th
unit, which rises, so cheap units fill first and the sum is the square. With weights in the proportion of 1 / capacity,
large brokers get more.

An optimum has prices (its dual): price[b] is what one more replica on b costs. The reduced cost of an arc is its cost
less what prices pay for it. Complementary slackness says which flows are optimal, all of them: arcs with a positive
reduced cost are empty in each, arcs with a negative one are full in each, and only the rest is free. So each objective
leaves the next exactly the free choices (`Choices`), rows without one are set aside, and no weights between objectives
are needed: they would have to be so large that 64 bits could not hold them. (One pair of prices is joined with a weight
all the same, for the proof's bound that does not take the balance as given: `replicas._joint_prices`.)

Sparse flows: a few arcs, then a price check
--------------------------------------------
200,000 partitions by 104 brokers are 21 million arcs, and nearly all partitions stay. So::

    cheapest set of each row -> which brokers have too much? -> flow over those rows and few brokers
              ^                                                          | prices
              +---- let it in <---- a cheaper set for any row? <---------+
                                          | none
                                          v
                                proven least over all arcs

At given prices the rows no longer depend on one another, and a row's cheapest legal set is greedy: its sets (so many
in all, from low to high in each rack) are the bases of a laminar matroid. The sum of the cheapest sets, less what the
sinks pay back, is a lower bound at any prices (see `reconciler.proof`). When no row has a cheaper set than it was
given, bound and value meet. This is column generation (Dantzig-Wolfe).

Leaders are a second flow of the same kind: one unit for each partition, over its replicas alone.
"""
