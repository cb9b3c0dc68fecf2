"""The files that `init` begins a real cluster's desired state with: everything is there, explained, most of it off."""

from collections.abc import Mapping

from reconciler.workflow.example_policies import EXAMPLE_POLICIES
from reconciler.workflow.modeline import modeline

CLUSTER = """\
# One cluster: how to reach it, what may be done to it, and how. Every field but `client` may be left out.
#   reconciler snapshot --cluster {name}    does it answer? writes what it observed; every verb takes that with --state
#   reconciler plan --cluster {name}        what differs, and what would be done about it
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  # clusterId: MkU3OEVBNTcwNTJENDM2Qk       # any other cluster is refused
  client:                                   # Kafka client properties, unchanged; or {{file: client.properties}}
    bootstrap.servers: localhost:9092
    # security.protocol: SASL_SSL
    # sasl.mechanism: SCRAM-SHA-512
    # sasl.username: ${{env:KAFKA_USERNAME}}
    # sasl.password: ${{file:/run/secrets/kafka-password}}

  # brokers:                                # only those that differ from {{state: active, capacity: 1}}
  #   - {{id: 5, state: draining, reason: host retirement}}    # active, cordoned, maintenance, draining, absent
  #   - {{id: 7, capacity: 2}}                # its fair share is twice that of the others

  # elections: off                          # preferred, the default: who should lead and is in sync is elected

  topics:
    managed: listed                         # listed: a topic that no file names is left alone; all: it is drift
    ignore: ["__*"]
    delete: never                           # never, or allow: without it nothing is ever deleted

  balance:                                  # each: off, even, or {{within: 10%}}
    replicas: off                           # replicas per broker, by capacity
    leaders: off                            # preferred leaders per broker, by capacity; copies nothing

  moves:
    throttle: 50MiB/s                       # per broker and direction; without one a plan warns
    perBroker: 10                           # replicas arriving at, and leaving, one broker in one stage
    perPartition: 1                         # replicas of one partition copied in one stage
    perStage: 500                           # partitions in one stage
    electionBatch: 100                      # partitions in one preferred-leader election request
    timeout: 2h                             # a stage that makes no progress for so long stops the run

  limits:                                   # over one of these the plan is shown, but not applied
    changedPartitions: 20%
    # movedBytes: 2TiB
    deletedTopics: 1                        # topics that one plan may delete; `state: absent` counts too
    # deletedBytes: 0B                      # bytes of all replicas that a plan may delete
    diskUse: 80%                            # at the worst moment of the run

  # windows:                                # when `apply` may work; always, if none is given
  #   - {{days: [mon, tue, wed, thu], from: "22:00", to: "05:00", timezone: Europe/Berlin}}
"""

CLASSES = """\
# What many topics share. A topic's own fields win over its class.
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: standard}
spec:
  replicationFactor: 3
  placement: {racks: {spread: prefer}}      # strict: never two replicas in one rack that could be in two
  config: {min.insync.replicas: 2}
"""

TOPICS = """\
# One topic a document, any number of documents and files. What is not written here is neither compared nor changed.
apiVersion: reconciler/v1
kind: Topic
metadata: {name: example, labels: {owner: your-team}}
spec:
  class: standard
  partitions: 6                             # may only grow
  # replicationFactor: 3
  config: {retention.ms: 7d}                # Kafka's own keys; null removes an override
  # placement:
  #   racks: {spread: strict, only: [a, b, c], leader: [a, b]}
  #   brokers: {only: [1, 2, 3], except: [5]}
  # protect: [delete, grow, move]           # what a plan may never do to this topic
"""


def layout_files(name: str, schemas: str | None = None) -> Mapping[str, str]:
    """Return a commented layout for a cluster of that name, texts by file name; `schemas` as for the demo."""
    return {
        **EXAMPLE_POLICIES,
        "classes.yaml": modeline(schemas, "TopicClass") + CLASSES,
        "cluster.yaml": modeline(schemas, "Cluster") + CLUSTER.format(name=name),
        "topics/example.yaml": modeline(schemas, "Topic") + TOPICS,
    }
