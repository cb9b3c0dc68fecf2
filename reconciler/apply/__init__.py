"""Runs a plan: observe, decide, do one thing, record; stopping it anywhere and starting again is the normal path.

Where something stands is told at three levels, each computed from the one before it:
`Place` (partition_path): where one look at the cluster shows a partition, among the replica lists that the plan has for
it. `MoveState` (record): where a move of the current stage stands, from the places of several looks. `Standing`
(model/tally): what people and JSON are told of each move of the whole plan. `ChangeState` (topic_changes) is to a
topic change what MoveState is to a move.

What is put back after a run, and when: `take_all_off` (throttling) at the end of a run or cancel; `adopt_leftovers`
(leftovers) when the next run of the same plan begins; `restore_leftovers` (workflow/runs) before an apply of any plan,
for runs that have ended or died; `take_off` there for `doctor --fix throttles`. Before the first change the values that
were there are in the journal, then in the cluster's record, so each of these can do it.
"""
