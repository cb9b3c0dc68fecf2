"""What is asked again, what never is, and how large a request may be: against scripted brokers."""

import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

import kafka.errors
import pytest
from helpers.waiting import HANG
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import MetadataRequest

from reconciler.admin.client import log_dirs, observe, requests, wire
from reconciler.admin.client.properties import Connection
from reconciler.admin.client.wire import Wire
from reconciler.admin.port import Answer
from reconciler.model.change import CreateTopic
from reconciler.model.config_value import UNREADABLE
from reconciler.model.problem import ClusterUnavailable, MissingRight, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from concurrent.futures import Future

    from kafka.protocol.api_message import ApiMessage

TIME_OUT = kafka.errors.RequestTimedOutError("no answer after 100 ms")
REFUSED = kafka.errors.KafkaConnectionError("111 ECONNREFUSED")
Script = Callable[[int, "ApiMessage"], object]
"""Called with the broker and the request; returns the response, or an error to fail with after the request was sent."""


@dataclass
class Connected:
    """One broker's connection, as the library's looks from here."""

    node: int
    brokers: "Brokers"
    connected: bool = True
    paused: frozenset[str] = frozenset()
    _reauth: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(is_reauthenticating=False))

    def __await__(self) -> Generator[None, None, "Connected"]:
        if self.node in self.brokers.down:
            raise REFUSED
        if self.node in self.brokers.closed:
            raise self.brokers.closed[self.node]
        return self
        yield

    async def send_request(self, request: "ApiMessage", request_timeout_ms: int) -> object:
        self.brokers.sent.append((self.node, request))
        self.brokers.timeouts.append(request_timeout_ms)
        told = self.brokers.script(self.node, request)
        if isinstance(told, Exception):
            raise told
        return told


TAKEN = [
    each.API_KEY
    for each in (
        DescribeClusterRequest,
        DescribeLogDirsRequest,
        DescribeQuorumRequest,
        ListPartitionReassignmentsRequest,
    )
]


@dataclass
class Brokers:
    """Brokers that answer by a script; `down` refuse connections, `unknown` are not in the library's metadata yet."""

    script: Script
    nodes: tuple[int, ...] = (1, 2, 3)
    down: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    closed: Mapping[int, Exception] = field(default_factory=dict)
    """Brokers that end the handshake or the login."""
    tried: list[int] = field(default_factory=list)
    sent: "list[tuple[int, ApiMessage]]" = field(default_factory=list)
    timeouts: list[int] = field(default_factory=list)
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(TAKEN, (0, 1)))

    @property
    def cluster(self) -> "Brokers":
        return self

    @property
    def broker_version_data(self) -> SimpleNamespace:
        return SimpleNamespace(api_versions=self.versions)

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=node) for node in self.nodes if node not in self.unknown]

    def broker_metadata(self, node: int) -> object:
        return None if node in self.unknown else node

    def metadata_request(self) -> MetadataRequest:
        return MetadataRequest(topics=[])

    def update_metadata(self, _told: object) -> None:
        self.unknown.clear()

    def get_connection(self, node: int) -> Connected:
        if node in self.unknown:
            raise kafka.errors.UnknownBrokerIdError(node)
        self.tried.append(node)
        return Connected(node, self)

    def run(self, function: Callable[..., Awaitable[object]], *arguments: object) -> object:
        try:
            function(*arguments).__await__().send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("the fake never waits")

    def wire(self, retry_seconds: float = 1.0) -> Wire:
        connection = Connection((("k", 9092),), {"security_protocol": "SSL"})
        client = SimpleNamespace(_manager=self)
        return Wire(client, request_seconds=30, retry_seconds=retry_seconds, connection=connection)


def let_time_pass(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time pass at once; returns the pauses asked for."""
    pauses: list[float] = []
    now = [1000.0]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(requests, "time", SimpleNamespace(sleep=sleep))
    return pauses


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return let_time_pass(monkeypatch)


def in_turn(*told: object) -> Script:
    """Answer with each in turn, with the last for ever."""
    left = list(told)
    return lambda _node, _request: left.pop(0) if len(left) > 1 else left[0]


def listing(error_code: int = 0) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=error_code, error_message=None, topics=[])


def moved(request: AlterPartitionReassignmentsRequest, error_code: int = 0) -> AlterPartitionReassignmentsResponse:
    topic_form = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    form = topic_form.ReassignablePartitionResponse
    topics = [
        topic_form(
            name=topic.name,
            partitions=[
                form(partition_index=partition.partition_index, error_code=0, error_message=None)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=error_code, error_message=None, responses=topics
    )


def created(request: CreateTopicsRequest, codes: Mapping[str, int], throttle_ms: int = 0) -> CreateTopicsResponse:
    """Answer with the code of each topic, 0 where it has none."""
    form = CreateTopicsResponse.CreatableTopicResult
    topics = [
        form(name=topic.name, error_code=codes.get(topic.name, 0), error_message=None) for topic in request.topics
    ]
    return CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=topics)


CONFIGS_FORM = DescribeConfigsResponse.DescribeConfigsResult
CONFIG_FORM = CONFIGS_FORM.DescribeConfigsResourceResult


def showing(*configs: "ApiMessage", error_code: int = 0) -> Brokers:
    """Return brokers that show these configs of topic `t`."""
    result = CONFIGS_FORM(
        error_code=error_code, error_message=None, resource_type=2, resource_name="t", configs=[*configs]
    )
    return Brokers(in_turn(DescribeConfigsResponse(results=[result])))


def targets(count: int) -> dict[TopicPartition, Sequence[int] | None]:
    return {TopicPartition("t", number): (1, 2) for number in range(count)}


def move(brokers: Brokers, count: int = 1, *, is_change_allowed: bool = True) -> dict[TopicPartition, Answer]:
    return requests.reassign(brokers.wire(), targets(count), is_replication_factor_change_allowed=is_change_allowed)


# Tries


def test_the_first_try_is_at_once_and_the_others_a_pause_apart_while_they_begin_in_time(
    no_waiting: list[float],
) -> None:
    assert list(wire.tries(1.0, 0.25)) == [0, 1, 2, 3, 4]
    assert no_waiting == [0.25] * 4
    assert list(wire.tries(0.0)) == [0]


# Reads


@pytest.mark.parametrize("code", [7, 13, 14, 15, 16, 41], ids=str)
def test_a_read_is_repeated_while_the_error_can_pass(code: int) -> None:
    brokers = Brokers(in_turn(listing(code), listing(code), listing()))
    assert observe.reassignments(brokers.wire()) == {}
    assert len(brokers.sent) == 3


def test_a_read_gives_up_in_time_with_one_sentence() -> None:
    brokers = Brokers(in_turn(listing(41)))
    with pytest.raises(ClusterUnavailable) as refused:
        observe.reassignments(brokers.wire())
    assert str(refused.value) == (
        "The cluster does not answer (NOT_CONTROLLER). "
        "Check that its brokers run and can be reached from here, then try again."
    )


EXPIRED = kafka.errors.KafkaConnectionError(
    "Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1)"
)
NOT_HIM = kafka.errors.SaslAuthenticationFailedError("SaslAuthenticationFailedError: invalid credentials")


@pytest.mark.parametrize(("error", "code"), [(EXPIRED, "KR608"), (NOT_HIM, "KR602")])
def test_a_failed_check_is_final_once_no_other_broker_is_left(error: Exception, code: str) -> None:
    brokers = Brokers(in_turn(listing()), nodes=(1, 2), closed={1: error, 2: error})
    with pytest.raises(ClusterUnavailable) as refused:
        observe.reassignments(brokers.wire())
    assert (refused.value.code, sorted(brokers.tried), brokers.sent) == (code, [1, 2], [])
    with pytest.raises(ClusterUnavailable) as refused:
        move(brokers)
    assert (refused.value.code, len(brokers.tried), brokers.sent) == (code, 4, [])


def test_a_broker_that_fails_its_check_is_passed_over_while_others_do_not() -> None:
    brokers = Brokers(in_turn(listing()), nodes=(1, 2), closed={1: EXPIRED})
    running = brokers.wire()
    assert [observe.reassignments(running) for _ in range(4)] == [{}] * 4
    assert {node for node, _ in brokers.sent} == {2}


def test_one_broker_that_is_asked_itself_and_fails_its_check_is_told_at_once() -> None:
    brokers = Brokers(in_turn(listing()), closed={2: EXPIRED})
    with pytest.raises(ClusterUnavailable, match=r"^The certificate of broker 2, or of a CA above it, has expired\."):
        brokers.wire().read(ListPartitionReassignmentsRequest, node_id=2)
    assert brokers.tried == [2]
    assert brokers.wire().read_each({2: ListPartitionReassignmentsRequest}) == {}
    assert brokers.tried == [2, 2]


def test_a_broker_that_does_not_answer_is_not_asked_twice_while_others_live() -> None:
    def script(node: int, _request: object) -> object:
        return TIME_OUT if node == 2 else listing()

    brokers = Brokers(script)
    asked = brokers.wire()
    for _ in range(9):
        observe.reassignments(asked)
    assert [node for node, _ in brokers.sent].count(2) == 1


def test_no_broker_is_taken_for_the_controller_so_its_death_stops_nothing() -> None:
    brokers = Brokers(in_turn(listing()))
    asked = brokers.wire()
    observe.reassignments(asked)
    brokers.down.add(brokers.sent[0][0])
    for _ in range(6):
        observe.reassignments(asked)
    assert len({node for node, _ in brokers.sent}) == 3


def test_a_broker_that_has_come_back_is_looked_for() -> None:
    dirs = DescribeLogDirsResponse.DescribeLogDirsResult(error_code=0, log_dir="/d", topics=[], total_bytes=9)
    brokers = Brokers(in_turn(DescribeLogDirsResponse(error_code=0, results=[dirs])), unknown={3})
    assert list(log_dirs.disks(brokers.wire(), [3]).log_dirs) == [3]


def test_log_dirs_of_a_broker_that_is_down_are_left_out_and_hide_no_other() -> None:
    dirs = DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code=0, log_dir="/d", topics=[], total_bytes=-1, usable_bytes=-1
    )
    brokers = Brokers(in_turn(DescribeLogDirsResponse(error_code=0, results=[dirs])), down={2})
    found = log_dirs.disks(brokers.wire(), [1, 2, 3]).log_dirs
    assert list(found) == [1, 3]
    assert found[1][0].total_bytes is None


# An empty answer is not an empty cluster


@pytest.mark.parametrize(
    "told", [DescribeLogDirsResponse(error_code=31, results=[]), DescribeLogDirsResponse(results=[])], ids=["v3", "v0"]
)
def test_log_dirs_without_the_right_are_no_empty_disks(told: DescribeLogDirsResponse) -> None:
    with pytest.raises(MissingRight) as refused:
        log_dirs.disks(Brokers(in_turn(told)).wire(), [1])
    assert str(refused.value) == (
        "Reading log dirs needs the right Describe on the cluster, which this user lacks. "
        "Grant it, for example with `kafka-acls --add --allow-principal User:NAME --operation Describe --cluster`."
    )


def test_configs_without_the_right_are_no_empty_overrides() -> None:
    with pytest.raises(MissingRight, match="needs the right DescribeConfigs on topic t"):
        observe.topic_configs(showing(error_code=29).wire(), ["t"])


def test_configs_of_a_topic_that_does_not_exist_are_left_out() -> None:
    assert observe.topic_configs(showing(error_code=3).wire(), ["t"]) == {}


def test_a_sensitive_value_is_left_out() -> None:
    brokers = showing(
        CONFIG_FORM(name="a", value=None, config_source=1, is_sensitive=True),
        CONFIG_FORM(name="b", value="1", config_source=1),
        CONFIG_FORM(name="c", value="2", config_source=5),
    )
    assert observe.topic_configs(brokers.wire(), ["t"]) == {"t": {"b": "1"}}


def test_a_key_that_the_brokers_release_has_removed_is_shown_without_its_value() -> None:
    brokers = showing(CONFIG_FORM(name="message.format.version", value=None, config_source=1, is_sensitive=True))
    assert observe.topic_configs(brokers.wire(), ["t"]) == {"t": {"message.format.version": UNREADABLE}}


def test_what_brokers_set_for_all_topics_is_told_beside_overrides_where_it_is_asked_for() -> None:
    sources = {"override": 1, "broker": 2, "brokers": 3, "static": 4, "default": 5}
    brokers = showing(*(CONFIG_FORM(name=name, value="1", config_source=at) for name, at in sources.items()))
    told = observe.topic_configs(brokers.wire(), ["t"], sources=observe.NOT_DEFAULT)
    assert told == {"t": dict.fromkeys(("broker", "brokers", "override", "static"), "1")}


# Writes


def test_a_write_without_an_answer_is_never_repeated() -> None:
    brokers = Brokers(in_turn(TIME_OUT, None))
    with pytest.raises(OutcomeUnknown, match=r"it may have happened or not. Look at the cluster before repeating it"):
        move(brokers)
    assert len(brokers.sent) == 1


def test_a_write_whose_answer_is_a_time_out_is_never_repeated() -> None:
    brokers = Brokers(lambda _node, request: moved(request, 7))
    with pytest.raises(OutcomeUnknown):
        move(brokers)
    assert len(brokers.sent) == 1


def test_a_write_that_did_not_leave_goes_to_another_broker() -> None:
    brokers = Brokers(lambda _node, request: moved(request), down={1, 2})
    assert move(brokers) == {TopicPartition("t", 0): Answer()}
    assert [node for node, _ in brokers.sent] == [3]


def test_a_write_is_repeated_where_no_controller_took_it() -> None:
    answers = iter([41, 0])
    brokers = Brokers(lambda _node, request: moved(request, next(answers)))
    assert move(brokers) == {TopicPartition("t", 0): Answer()}
    assert len(brokers.sent) == 2


def test_a_request_never_names_more_than_a_thousand_partitions() -> None:
    brokers = Brokers(lambda _node, request: moved(request))
    assert len(move(brokers, 2500)) == 2500
    assert [sum(len(topic.partitions) for topic in request.topics) for _, request in brokers.sent] == [1000, 1000, 500]


def test_new_topics_are_batched_by_their_partitions() -> None:
    brokers = Brokers(lambda _node, request: created(request, {}))
    changes = [CreateTopic(name, 400, 3) for name in ("a", "b", "c", "d")] + [CreateTopic("huge", 5000, 3)]
    assert set(requests.create_topics(brokers.wire(), changes).values()) == {Answer()}
    assert [[topic.name for topic in request.topics] for _, request in brokers.sent] == [
        ["a", "b"],
        ["c", "d"],
        ["huge"],
    ]


def test_what_the_mutation_quota_refused_is_sent_again_after_its_time(no_waiting: list[float]) -> None:
    codes = iter(({"b": 89}, {}))
    brokers = Brokers(lambda _node, request: created(request, next(codes), throttle_ms=2500))
    answers = requests.create_topics(brokers.wire(), [CreateTopic("a", 1, 1), CreateTopic("b", 1, 1)])
    assert answers == {"a": Answer(), "b": Answer()}
    assert [[topic.name for topic in request.topics] for _, request in brokers.sent] == [["a", "b"], ["b"]]
    assert no_waiting == [2.5]


def test_what_is_only_validated_is_asked_again_and_a_missing_right_hides_its_own_item_alone() -> None:
    """A lost answer has lost no change, so it is asked again; the lock's guard stands before changes alone."""
    lost = [TIME_OUT]

    def script(_node: int, request: CreateTopicsRequest) -> object:
        return lost.pop() if lost else created(request, {"b": 29, "c": 40})

    def no_change() -> None:
        raise AssertionError("nothing is changed")

    brokers = Brokers(script)
    asking = brokers.wire(retry_seconds=30)
    asking.guard = no_change
    changes = [CreateTopic(name, 1, 1) for name in ("a", "b", "c")]
    assert requests.create_topics(asking, changes, is_validated_only=True) == {
        "a": Answer(),
        "b": Answer("TOPIC_AUTHORIZATION_FAILED"),
        "c": Answer("INVALID_CONFIG"),
    }
    assert [request.validate_only for _, request in brokers.sent] == [True, True]


def test_the_guard_of_the_replication_factor_is_used_where_brokers_know_it() -> None:
    key = AlterPartitionReassignmentsRequest.API_KEY
    new = Brokers(lambda _node, request: moved(request), versions={key: (0, 1)})
    old = Brokers(lambda _node, request: moved(request), versions={key: (0, 0)})
    for brokers in (new, old):
        assert move(brokers, is_change_allowed=False) == {TopicPartition("t", 0): Answer()}
    assert not new.sent[0][1].allow_replication_factor_change
    assert old.sent[0][1].allow_replication_factor_change


def test_an_item_that_the_answer_leaves_out_is_not_taken_for_done() -> None:
    empty = AlterPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, responses=[])
    (answer,) = move(Brokers(in_turn(empty))).values()
    assert answer.error == "UNKNOWN_SERVER_ERROR"


def test_a_missing_right_to_move_is_named() -> None:
    with pytest.raises(MissingRight, match="Reassigning partitions needs the right Alter on the cluster"):
        move(Brokers(lambda _node, request: moved(request, 31)))


def test_each_elections_own_error_is_read() -> None:
    form = ElectLeadersResponse.ReplicaElectionResult
    told = [(0, 0), (1, 84), (2, 80), (3, 3)]
    results = [
        form.PartitionResult(partition_id=number, error_code=code, error_message=f"m{code}") for number, code in told
    ]
    response = ElectLeadersResponse(
        throttle_time_ms=0, error_code=0, replica_election_results=[form(topic="t", partition_result=results)]
    )
    brokers = Brokers(in_turn(response))
    assert requests.elect_preferred_leaders(brokers.wire(), list(targets(4))) == {
        TopicPartition("t", 0): Answer(),
        TopicPartition("t", 1): Answer(),
        TopicPartition("t", 2): Answer("PREFERRED_LEADER_NOT_AVAILABLE", "m80"),
        TopicPartition("t", 3): Answer("UNKNOWN_TOPIC_OR_PARTITION", "m3"),
    }


def test_a_replica_that_is_not_there_yet_has_its_log_dir_chosen_and_others_are_told_why_not() -> None:
    form = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    told = [(0, 9), (1, 3), (2, 57), (3, 0)]
    results = [form.AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code) for number, code in told]
    topics = [form(topic_name="t", partitions=results)]
    brokers = Brokers(in_turn(AlterReplicaLogDirsResponse(throttle_time_ms=0, results=topics)))
    places = {TopicPartition("t", number): "/d1" if number % 2 else "/d2" for number in range(4)}
    answers = requests.choose_log_dirs(brokers.wire(), 2, places)
    assert [answers[TopicPartition("t", number)].error for number in range(4)] == [
        None,
        None,
        "LOG_DIR_NOT_FOUND",
        None,
    ]
    ((node, request),) = brokers.sent
    assert node == 2
    assert {one.path: one.topics[0].partitions for one in request.dirs} == {"/d1": [1, 3], "/d2": [0, 2]}


def test_a_missing_right_to_choose_log_dirs_is_named_and_a_broker_that_is_down_is_told() -> None:
    form = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    results = [form.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=31)]
    refused = AlterReplicaLogDirsResponse(throttle_time_ms=0, results=[form(topic_name="t", partitions=results)])
    places = {TopicPartition("t", 0): "/d1"}
    with pytest.raises(MissingRight, match="Choosing the log dirs of replicas needs the right Alter on the cluster"):
        requests.choose_log_dirs(Brokers(in_turn(refused)).wire(), 2, places)
    with pytest.raises(ClusterUnavailable, match="Broker 2 does not answer"):
        requests.choose_log_dirs(Brokers(in_turn(refused), down={2}).wire(), 2, places)


def test_electing_nothing_sends_nothing() -> None:
    brokers = Brokers(in_turn(None))
    assert requests.elect_preferred_leaders(brokers.wire(), []) == {}
    assert not brokers.sent


def test_only_a_broker_itself_changes_its_configs_and_its_silence_is_told_as_its_own() -> None:
    with pytest.raises(ClusterUnavailable, match=r"Broker 2 does not answer .* only it can change its own configs"):
        requests.alter_broker_configs(Brokers(in_turn(None), down={2}).wire(), 2, [])
    with pytest.raises(OutcomeUnknown):
        requests.alter_broker_configs(Brokers(in_turn(TIME_OUT)).wire(), 2, [])


# Interrupts


def test_an_interrupt_does_not_wait_for_a_broker_that_never_answers() -> None:
    released = threading.Event()
    answers: list[Future[bool]] = []

    def interrupted() -> None:
        with wire._threads(1) as pool:
            answers.append(pool.submit(released.wait, HANG))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (answer,) = answers
    assert not answer.done()
    released.set()
    assert answer.result(HANG)
