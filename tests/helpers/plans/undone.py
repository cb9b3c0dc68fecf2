"""Runs that are undone: what a rollback must leave, read off the state before by plain loops."""

from dataclasses import replace

from helpers.plans.end_state import in_flight, throttles
from helpers.plans.small_runs import RATE, cluster, election, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.files.plan_file import with_id
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import Desired, DesiredCluster, MovePolicy
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.staging.rollback import GoingBack, rollback_of
from reconciler.workflow.own_proof import refuse_unsafe_return

DESIRED = Desired(DesiredCluster("small", moves=MovePolicy(throttle_bytes_per_second=RATE, per_broker=2, per_stage=3)))


def half_full() -> Cluster:
    """Return the small cluster of every kind of throttle, on disks that are half full."""
    before = cluster()
    disks = (LogDir("/d1", 10**12, 5 * 10**11), LogDir("/d2", 10**12, 5 * 10**11))
    return replace(before, brokers={id_: replace(one, log_dirs=disks) for id_, one in before.brokers.items()})


def plan_with_chains(before: Cluster) -> Plan:
    """Return a plan of stages with orders, chains, a factor up and one down, and elections."""
    return plan_of(
        [
            ReassignStage(1, (move("orders-1", "2,3,1", "3,2,1"), move("payments-1", "2,4", "4,2")), RATE),
            ElectStage(2, (election("orders-1", 3), election("payments-1", 4))),
            ReassignStage(3, (move("orders-0", "1,2,3", "1,2,4"), move("payments-0", "2,4", "2,4,6")), RATE),
            ReassignStage(4, (move("orders-0", "1,2,4", "5,2,4"), move("clicks-0", "1,2,3", "1,2")), RATE),
            ElectStage(5, (election("orders-0", 5), election("quiet-0", 3))),
        ],
        before,
        id="0badcafe",
    )


def back(undone: Plan, admin: SimulatedAdmin, desired: Desired = DESIRED) -> GoingBack:
    """Return the rollback of that plan from what the cluster shows now, with its id."""
    observed = admin.observe()
    found = rollback_of(undone, observed, desired)
    refuse_unsafe_return(found.plan, observed, desired)
    return GoingBack(with_id(found.plan), found.left)


def places(cluster: Cluster) -> dict[str, tuple[tuple[int, ...], int | None, tuple[int, ...]]]:
    """Return replicas, leader and sorted ISR of every partition."""
    return {str(key): (one.replicas, one.leader, tuple(sorted(one.isr))) for key, one in cluster.partitions()}


def differences(before: Cluster, after: Cluster) -> list[str]:
    """Return what is not as it was: lists in order, leaders, ISRs, throttles, configs, and what is in flight."""
    was, now = places(before), places(after)
    found = [f"{key}: {was[key]}, now {now.get(key)}" for key in was if was[key] != now.get(key)]
    found += [f"{key} is new" for key in now if key not in was]
    found += [f"{key} is in flight" for key in in_flight(after)]
    if throttles(before) != throttles(after):
        found.append(f"throttles: {throttles(before)}, now {throttles(after)}")
    configs = {name: dict(topic.configs) for name, topic in before.topics.items()}
    found += [f"configs of {n}" for n, t in after.topics.items() if n in configs and dict(t.configs) != configs[n]]
    return found
