"""Turns moves into stages that are safe one by one, and computes what undoes a plan.

How a plan's whole moves become stages (`stages.stage_moves`):

1. `chain` splits the move of each partition into steps. A step copies at most `moves.perPartition` replicas, and every
   state on the way keeps the rack rule and the number of live replicas. Partitions do not depend on one another there,
   so any part of a set of steps may be done or in flight.
2. `packing` puts the steps of all partitions into stages: as few as `moves.perStage`, urgency and the chains allow, no
   broker behind the others (`dealing`), and within the limits, where a stage frees nothing before its end (`room`
   counts replicas, `disk` and `log_dirs` count bytes). If that exceeds a limit, `safe_order` searches an order that
   does not, and `ways` searches other steps.
3. `stages` puts topic changes and elections with them.
4. `problems` says which limits are broken and what could not be counted.
5. `assembly` puts the plan together; `estimate` says how long it takes, by the admission that a run follows
   (`model.admission`).

`rollback` makes the plan that undoes another; `return_path` decides partition by partition whether it can go back.
Read `step`, `chain`, `packing` first.
"""
