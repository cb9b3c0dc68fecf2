"""Finds room on disks: other placements, where the one chosen would fill a disk too far.

`limits.diskUse` makes each disk a knapsack, which no flow can keep. But the flow leaves all its optima (`Choices`), and
among these an integer program (CP-SAT) looks for one within the disks, as near to the flow's as can be. What it finds
is proved by the flow's own prices. Where no optimum fits, it looks for the fewest bytes among all that are as balanced:
the flow's bound holds for these too, and the plan shows the gap between the two. `place` is the way in, and picks what
of a large cluster is looked at; `disks` is what they hold, `search` the integer program, `relief` where it begins.

Disks count from step to step, as stages do: a copy takes its bytes from the begin of its step, and what a partition
leaves is free once its step has ended.
"""
