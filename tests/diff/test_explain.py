from reconciler.diff.explain import differences
from reconciler.model.change import AlterConfigs, Changes, CreatePartitions, CreateTopic, DeleteTopic, Difference
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.problem import Location

AT = Location("topics.yaml", 3)


def test_changed_fields_are_told_old_to_new_and_sorted() -> None:
    observed = Cluster("c", topics={"gone": Topic("gone", (Partition(0, 1, (1,), (1,)),))})
    changes = Changes(
        topic_changes=(
            CreateTopic("new", 3, 2, {"retention.ms": "1"}, at=AT),
            CreatePartitions("grown", 2, 4, at=AT),
            AlterConfigs(
                "set", {"retention.ms": "2"}, ("segment.ms",), {"retention.ms": "1", "segment.ms": "9"}, at=AT
            ),
            DeleteTopic("gone", at=AT),
        )
    )
    assert differences(changes, observed) == (
        Difference("gone", "partitions", "1", None, AT),
        Difference("grown", "partitions", "2", "4", AT),
        Difference("new", "config.retention.ms", None, "1", AT),
        Difference("new", "partitions", None, "3", AT),
        Difference("new", "replicationFactor", None, "2", AT),
        Difference("set", "config.retention.ms", "1", "2", AT),
        Difference("set", "config.segment.ms", "9", None, AT),
    )
