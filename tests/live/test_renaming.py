"""Behind a proxy that renames topics in Metadata alone no topic is taken for gone, and no broker is safe to stop."""

import json
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.renaming import Renaming
from helpers.program.warm import reconciler

pytestmark = pytest.mark.brokers

BROKERS = (1, 2, 3)
VERBS = (("snapshot", "--out", "s.json"), ("status",), ("plan",), ("diff",), ("topics", "list"))


def test_names_that_differ_between_answers_are_told_and_nothing_is_safe_to_stop(
    tmp_path: Path, kafka_version: str
) -> None:
    with (
        Renaming(BROKERS, prefix="tenant-", names=("orders",)) as proxy,
        KafkaCluster(
            version=kafka_version,
            broker_ids=BROKERS,
            is_plain=True,  # the proxy reads and changes what the brokers answer
            listeners={"FAR": "PLAINTEXT"},
            advertised={"FAR": proxy.addresses},
        ) as kafka,
    ):
        proxy.lead_to({broker: kafka.listener("FAR", broker) for broker in kafka.alive})
        create(kafka, {"orders": {0: (1, 2, 3)}, "clicks": {0: (2, 3)}})
        declare(tmp_path, kafka, client=f'{{bootstrap.servers: "{proxy.bootstrap}"}}')
        for verb in VERBS:
            ended = reconciler(*verb, cwd=tmp_path, expect=1)
            assert "Metadata lists tenant-orders, which DescribeConfigs does not know" in ended.err, (verb, ended)
            assert "(KR612)" in ended.err, (verb, ended)
            assert "safe to stop" not in ended.out, verb
        assert not (tmp_path / "s.json").exists()
        looked = reconciler("doctor", "-o", "json", cwd=tmp_path, expect=None)
        found = json.loads(looked.out)
        assert found["safeToStop"] == []
        assert any("tenant-orders" in one for one in found["unexamined"])
        # The brokers themselves know one name; the third topic is __consumer_offsets.
        declare(tmp_path, kafka)
        assert "3 topics" in reconciler("snapshot", "--out", "s.json", cwd=tmp_path).err
        assert json.loads(reconciler("doctor", "-o", "json", cwd=tmp_path, expect=None).out)["safeToStop"]
