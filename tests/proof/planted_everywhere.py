"""Faults in what planner, diff and model compute with: sizes, counts, targets and rules, each function once.

Each is planted in the running code, for the planner and for the proof alike: the proof sees it only if it uses no such
function itself.
"""

from mutations.faults import Fault

_ROWS = [
    # Sizes.
    ("model.cluster.Partition.bytes_to_copy", "if self.untiered_bytes is not None", "if self.untiered_bytes is None"),
    ("model.cluster.Partition.bytes_on_brokers", "return max(", "return min("),
    ("model.cluster.Partition.size_on", "return self.sizes[self.replicas.index(broker_id)]", "return 1"),
    ("model.cluster.Broker.total_bytes", "sum(known) if", "2 * sum(known) if"),
    ("model.cluster.Broker.used_bytes", "return sum(", "return 3 * sum("),
    ("model.partition_table.PartitionTable.bytes_to_copy", "self.bytes_on_brokers)", "self.bytes_on_brokers // 2)"),
    (
        "model.partition_table.PartitionTable.bytes_on_brokers",
        "np.where(leaders >= 0, leaders,",
        "np.where(leaders >= 9, 7,",
    ),
    ("model.partition_table.PartitionTable.sizes_on", "found, np.maximum", "found // 2, np.maximum"),
    ("model.move_table.Moves.bytes_a_copy", "self.bytes // np.maximum(self.copies, 1)", "self.bytes"),
    ("model.columns.exact_product", "else counts * sizes", "else counts * (sizes // 2)"),
    ("planner.costs.copies", "return", "size = size // 2; return"),
    (
        "planner.place._moves",
        "exact_product(moves.copies, np.maximum(size, 0))",
        "exact_product(moves.copies, size // 3)",
    ),
    ("planner.place._with_forced", "more = sets.proof, forced[", "more = sets.proof, 2 * forced["),
    ("planner.placement_task.forced_bytes", "* task.size[rows]", "* 0"),
    ("diff.capacities._foreign", "max(0, size - held.get(broker_id, 0))", "size"),
    # Counts.
    ("model.columns.is_missing", "~is_at(named, table)", "~is_at(named[:, ::-1], table)"),
    ("model.columns.is_at", "range(table.shape[1])", "range(1)"),
    ("model.columns.sums", "np.add.at(total, place,", "np.add.at(total, place[:1],"),
    ("model.columns.alike", "code * span + (", "code * span + 0 * ("),
    ("model.columns.places_in", "dense[ids] = np.arange(len(ids))", "dense[ids] = np.arange(len(ids))[::-1]"),
    ("model.columns.lists_of", "one >= 0]", "one > 1]"),
    ("model.columns.distinct", "np.flatnonzero(np.bincount(there))", "np.flatnonzero(np.bincount(there))[:-1]"),
    (
        "model.columns.beside_each_other",
        "start : start + len(each), : each.shape[1]",
        "start : start + len(each), : each.shape[1] - 0",
    ),
    ("model.partition_table.PartitionTable.factor", "(self.target >= 0)", "(self.target >= 2)"),
    (
        "model.partition_table.PartitionTable.target",
        "not in self.rare[row].removing_replicas",
        "in self.rare[row].removing_replicas",
    ),
    ("model.partition_table.PartitionTable.rows_at", "self.start[place] + number", "self.start[place] + number // 2"),
    ("model.move_table.Moves.copies", "self.is_added.sum(axis=1)", "self.is_added[:, :1].sum(axis=1)"),
    ("planner.shares._held", "sums(brokers, one)", "sums(brokers, 2 * one)"),
    ("planner.placement_task._counts", "return np.bincount(", "return 2 * np.bincount("),
    ("planner.objectives.weights", "common // (", "1 + common // ("),
    ("planner.objectives.band", "max(0, least)", "max(0, least - 1)"),
    ("model.desired.DesiredBroker.weight", "self.weights.get(measure, self.capacity)", "1"),
    ("model.cluster.Cluster.number_in_force", "return int(text)", "return 1 + int(text)"),
    # Targets.
    ("model.cluster.Partition.target_replicas", "if not self.removing_replicas:", "if self.replicas:"),
    ("diff.rules.TopicRules.target_factor", "self.replication_factor or len(replicas)", "len(replicas)"),
    ("diff.compare._growth", "declared.partitions", "(declared.partitions or 0) * 1"),
    ("diff.broken.assigned", "return rules.assignment[partition]", "return rules.assignment[partition][::-1]"),
    ("planner.place._assigned", "target.lists[key] for", "target.lists[key][::-1] for"),
    ("planner.place._ordered", "place[holders == leader[:, None]] = -1", "place[holders == leader[:, None]] = 99"),
    ("planner.to_place.partitions_to_place", "np.where(factor > 0, factor,", "np.where(factor > 9, factor,"),
    # Rules.
    ("model.cluster.Cluster.is_alive", "not broker.is_fenced", "True"),
    ("model.cluster.Broker.is_cordoned", "is_told or (", "False and ("),
    ("model.cluster.Broker.cordoned_dirs", "if one.is_cordoned or", "if not one.is_cordoned or"),
    ("model.desired.DesiredCluster.broker", "or DesiredBroker(broker_id)", "or DesiredBroker(broker_id, capacity=2)"),
    ("diff.rules._of_placement", "state_of[broker_id] not in LEAVING and", ""),
    ("diff.rules._rack_excess", "return max(over, under)", "return 0"),
    ("diff.rules._yielding", "extra) >= replication_factor)", "extra) >= 0)"),
    ("diff.rules.TopicRules.rack_bounds", "-(-replication_factor // racks)", "replication_factor"),
    ("diff.rules.TopicRules.rack_limits", "spread is Spread.IGNORE:", "spread is not Spread.IGNORE:"),
    ("diff.rules.barred_by", 'return "brokers.except"', "return None"),
    ("diff.rules.cordoned_brokers", "one.state is BrokerState.CORDONED", "False"),
    ("diff.managed.managed_topics", "elif desired.cluster.topics.is_all_managed:", "else:"),
    ("diff.managed.covering_pattern", "return max(", "return min("),
    ("diff.capacities.capacities", "if one.state not in LEAVING", ""),
    ("planner.placement_task._choice_of", "return allowed, low, high", "return allowed, 0 * low, high + 9"),
    ("planner.placement_task.eligible_brokers", "most=desired.cluster.limits.replicas_per_broker", "most=None"),
    ("planner.leaders._candidates", "task.rule_classes.leadable[rule_class, held]", "True"),
    # Stages.
    ("staging.chain._is_plain", "moves.copies <= situation.per_partition", "moves.copies <= 99"),
    ("staging.chain._walked", "<= situation.per_partition", "<= 99"),
    ("staging.chain._excess", "return walk.rules.rack_excess(tuple(replicas))", "return 0"),
    ("staging.chain._step", "elected if elected in walk.situation.alive else None", "elected"),
    ("staging.chain._ordered", "return (head, *final, *other)", "return (*final, head, *other)"),
    ("staging.chain._leader_after", "in target else target[0]", "in target else target[-1]"),
    ("staging.chain._options", "range(min(most, len(staying) + count), least - 1, -1)", "range(1, 1 + most)"),
    ("staging.disk.DiskUse.shortfall", "return short", "return 0"),
    ("staging.disk.DiskUse._freed", "size if size is not None else", "9 * size if size is not None else"),
    ("staging.disk.DiskUse._ceilings", "+ arriving[broker_id] > allowed", "> allowed"),
    ("staging.disk._arriving", "moves.bytes_a_copy[:, None]", "moves.bytes_a_copy[:, None] // 3"),
    ("model.disk_space.bytes_held", "held[broker_id] = used", "held[broker_id] = used // 2"),
    ("staging.stages.due_now", "(due if _is_in_sync(election, observed) else skipped)", "due"),
    ("staging.stages.timed", "last.append(change)", "before.append(change)"),
    ("staging.packing._dealt", "placed, policy.per_stage, stages", "placed, 10**6, stages"),
    ("staging.packing._dealt_by", "found[run.before[turn]] + 1", "found[run.before[turn]]"),
]
FAULTS = [
    (f"reconciler.{path.partition('.')[0]}", Fault(path, path.partition(".")[2], *exchange))
    for path, *exchange in _ROWS
]
"""The package of each, and the fault."""
