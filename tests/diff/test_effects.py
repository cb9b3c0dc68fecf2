from dataclasses import replace

from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.effects import with_effects
from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange, destruction
from reconciler.model.cluster import Cluster, Group, GroupMember, Partition, Topic
from reconciler.model.effect import Destruction, Effect, EffectClass

OBSERVED = small_cluster("orders-0: 1,2,3", "orders-1: 2,3,1")
READERS = (
    Group("payments", "Stable", members=(GroupMember("m", subscription=("orders",)),)),
    Group("audit", "Empty", offsets={"orders": {0: 40}}),
    Group("search", "Stable", members=(GroupMember("s", subscription=("clicks",)),)),
)


def sized(cluster: Cluster, *sizes: int | None, topic: str = "orders") -> Cluster:
    """Return the cluster with replicas of these sizes in each partition of that topic."""
    partitions = tuple(replace(each, sizes=sizes) for each in cluster.topics[topic].partitions)
    return replace(cluster, topics={**cluster.topics, topic: replace(cluster.topics[topic], partitions=partitions)})


def effects(change: TopicChange, observed: Cluster) -> tuple[Effect, ...]:
    (found,) = with_effects((change,), observed)
    return found.effects


def test_a_deletion_destroys_the_bytes_of_all_replicas_and_names_who_reads_it() -> None:
    observed = replace(sized(OBSERVED, 5, 5, 7), groups=READERS, has_groups=True)
    (effect,) = effects(DeleteTopic("orders"), observed)
    assert (effect.kind, effect.bytes) == (EffectClass.DESTROYS, 2 * (5 + 5 + 7))
    assert effect.groups == ("audit", "payments")
    assert effect.live_groups == ("payments",)


def test_bytes_that_are_not_known_of_every_replica_are_unknown() -> None:
    (effect,) = effects(DeleteTopic("orders"), sized(OBSERVED, 5, None, 7))
    assert effect.bytes is None


def test_a_deletion_of_a_tiered_topic_takes_what_is_remote_too_and_nobody_knows_how_much() -> None:
    tiered = small_cluster("orders-0: 1,2,3 size 5", configs={"orders": {"remote.storage.enable": "true"}})
    what = "deletes every record, those in remote storage too, which log dirs do not count"
    assert effects(DeleteTopic("orders"), tiered) == (Effect(EffectClass.DESTROYS, what, is_total=True),)


def test_groups_that_nobody_looked_at_are_unknown_and_none_is_none() -> None:
    (unknown,) = effects(DeleteTopic("orders"), OBSERVED)
    (none,) = effects(DeleteTopic("orders"), replace(OBSERVED, has_groups=True))
    assert (unknown.groups, none.groups) == (None, ())


def test_growth_cannot_be_taken_back_and_a_new_topic_harms_nobody() -> None:
    (effect,) = effects(CreatePartitions("orders", 2, 4), OBSERVED)
    assert effect.kind is EffectClass.IRREVERSIBLE
    assert effects(CreateTopic("new", 1, 1), OBSERVED) == ()


def test_destruction_counts_topics_bytes_and_each_group_once() -> None:
    observed = replace(sized(OBSERVED, 1, 1, 1), groups=READERS, has_groups=True)
    clicks = Topic("clicks", (Partition(0, 1, (1,), (1,), sizes=(4,)),))
    observed = replace(observed, topics={**observed.topics, "clicks": clicks})
    changes = with_effects((DeleteTopic("clicks"), DeleteTopic("orders"), CreateTopic("new", 1, 1)), observed)
    assert destruction(changes) == Destruction(topics=2, bytes=10, is_size_known=True, groups=3)
    assert destruction(changes[2:]) is None


def test_a_deletion_of_a_plan_file_without_effects_still_destroys() -> None:
    found = Destruction(topics=1, bytes=0, is_size_known=False, groups=None)
    assert destruction((DeleteTopic("orders"),)) == found
