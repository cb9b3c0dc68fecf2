"""Turns moves into stages that are safe one by one, and computes what undoes a plan.

How a plan's whole moves become stages (`stages.stage_moves`):

1. `chain` splits the move of each partition into steps. A step copies at most `moves.perPartition` replicas, and every
   state on the way keeps the rack rule and the number of live replicas.
2. `packing` puts the steps of all partitions into stages: greedily, the busiest broker first, within
   `moves.perBroker`, `moves.perStage` and the disks (`work` counts brokers, `disk` and `log_dirs` count bytes). Where
   packing overfills a disk, `safe_order` searches an order that does not.
3. `stages` puts topic changes and elections before, between and after them.
4. `problems` and `throttle_feasibility` say which limits are broken and what could not be counted.
5. `assembly` puts the plan together; `estimate` says how long it takes.

`rollback` makes the plan that undoes another; `return_path` decides partition by partition whether it can go back.
Read `step`, `chain`, `packing` first.
"""
