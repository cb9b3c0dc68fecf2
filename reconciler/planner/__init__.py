"""Changes -> moves: the least movement that keeps every rule and reaches the balance asked for.

Every choice here is a minimum-cost flow: partition -> rack within the partition -> broker -> sink, the bounds of the
rack arcs being the rack rule and the bounds of the broker arcs the balance. Integral, so exact. Objectives are solved
one after another; each confines the next to its own optimal solutions (complementary slackness), so that no weights
have to be found that would not overflow. Read `place` first, then `replicas`, `leaders`, `levels`, `network`.
"""
