"""Tells of consumer groups: who reads what, how far behind, and what a change would do.

    cli        one file a verb of `groups`: arguments in, exit code out
    workflow   one file a verb: read, compute, write; `assignors` loads a class of a user's own
    render     groups, simulations and advice as text, Markdown and JSON
    files      scenarios of groups over time, and CSVs of offsets
    simulate   `simulation`: rebalance after rebalance; `compare`: a real group (`live`) after a change (`change`);
               `growth`: what a plan that grows a topic does to its readers, which the verb `plan` hands to the house
    offsets    where a reset would put each partition, within what its log holds
    advice     how many partitions a topic needs; `partition_costs`: what they cost
    assignors  Kafka's own, one for one: `range_roundrobin`, `sticky`, `server_uniform`; `registry` lists them
    model      a group as it is (`state`), over time (`simulation`), and advice

From `simulate` down all is pure: no file, no clock. How the sticky assignors and the coordinator's differ:

    sticky_equal, sticky_unequal   by quotas where all members subscribe alike, else move by move, from what they claim
    server_uniform, server_unequal   the same two cases, from the target that the coordinator keeps
    server_order                   both follow Java's hash maps, whose order is computed here and in `model.java_hash`

The house below never imports this wing.
"""
