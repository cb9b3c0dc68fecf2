"""Runs a plan: observe, decide, do one thing, record. To stop it anywhere and to start again is the normal path.

A run, in the order of its files:

1. Lock (`run`): one run a cluster. The lock is a membership of a consumer group, and ends with its process.
2. Adopt (`leftovers`): what earlier runs of this plan left, by the journal of this machine and by what the cluster
   itself shows (`evidence`). The record in the cluster is a hint, as others can write it, and may be gone.
3. Check (`checks`, `refusals`): whatever forbids the run, before its first change and again before each stage.
4. Turn (`turns`): look (`observed`), decide (`decide`, a pure function), do that one thing (`perform`), remember
   (`stage_memory`). A stage puts throttles on before its moves, lists first, and takes them off after, lists last.
5. End: throttles and cordons off, and a look afterwards that decides what is said (`throttling`).

A run ends in one of three ways. *In order*: moves in flight go back (`withdraw`), throttles come off, and the result
says what is left. *At once*, at a second signal: nothing is put back, and all that may be left is named. *As it is*,
when the lock is lost: another run may be at work, so nothing is written any more.

    killed                      what is on the cluster            what takes it off
    before the first throttle   nothing, or an empty record       the next run writes over the record
    throttles on, no move yet   lists, then rates                 apply or cancel with the plan, doctor --fix throttles
    moves in flight             lists, rates, cordons, moves      apply goes on; cancel takes the moves back first
    moves done                  cordons, and rates before lists   apply or cancel with the plan, doctor --fix throttles
    at the end                  the record                        the next run writes over it

How far a move is, is computed in four steps (the first two are in partition_path): `Place`, where one look shows a
partition among the replica lists of its plan; `MovePlace`, how far one of its moves is by that look; `MoveState`
(stage_memory), the same from several looks; `Standing` (model/tally), what people and JSON read of each move.
"""
