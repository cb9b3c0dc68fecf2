"""A cluster's files with as many topics as are wanted, as several teams write them."""

from pathlib import Path

CLUSTER = """apiVersion: reconciler/v1
kind: Cluster
metadata: {name: many}
spec:
  client: {bootstrap.servers: "kafka:9092"}
---
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: standard}
spec:
  replicationFactor: 3
  placement: {racks: {spread: strict}}
  config: {min.insync.replicas: 2}
"""
TOPIC = """apiVersion: reconciler/v1
kind: Topic
metadata:
  name: team-{team:02}.topic-{number:05}
  labels: {{owner: team-{team:02}}}
spec:
  class: standard
  {partitions}: {count}
  config:
    retention.ms: 7d
    segment.bytes: 1GiB
    cleanup.policy: delete
  placement:
    brokers: {{except: [5]}}
"""
TEAMS = 50
TOPICS_A_FILE = 100


def write_topics(root: Path, topics: int, *, is_wrong: bool = False) -> Path:
    """Write cluster `many` below the root, 100 topics a file, and return the root; wrong: each has an unknown key."""
    folder = root / "many"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER, "utf-8")
    key = "partition" if is_wrong else "partitions"
    for first in range(0, topics, TOPICS_A_FILE):
        texts = [
            TOPIC.format(team=number % TEAMS, number=number, partitions=key, count=6 + number % 13)
            for number in range(first, min(topics, first + TOPICS_A_FILE))
        ]
        (folder / f"topics-{first:05}.yaml").write_text("---\n".join(texts), "utf-8")
    return root
