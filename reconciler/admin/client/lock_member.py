"""Speaks as one member of the group whose leader holds the lock: each request once, and what its answer means.

A classic group (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) has exactly one leader: the member that came first, for as
long as it is heard of. The leader hands its own name to every member as their assignment, so that whoever is not the
leader learns in the same exchange who is.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, REQUEST_TIMED_OUT, missing_right, name_of, said
from reconciler.admin.client.exchange import NoAnswer, NotSent
from reconciler.admin.client.group_writes import coordinator_question
from reconciler.admin.client.groups import GROUP_ID_NOT_FOUND, ConsumerGroupDescribeRequest
from reconciler.admin.client.wire import Wire
from reconciler.model.lock import LOCK_GROUP, Holder, RateRequest, StopRequest, author
from reconciler.model.problem import ClusterUnavailable, ReconcilerError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import JoinGroupResponse

PROTOCOL_TYPE, PROTOCOL = "reconciler", "one-run"
# The least that brokers allow by default (group.min.session.timeout.ms): so soon a dead holder is missed.
SESSION_SECONDS = 6.0
MOST_SESSION_SECONDS = 60.0
# Only a session's end may cost a holder its place, never a rebalance that it is slow to follow.
REBALANCE_SECONDS = 60.0
ANSWER_SECONDS = 2.0
# A broker waits for a silent member's session, and first for group.initial.rebalance.delay.ms, before it answers.
JOIN_SECONDS = 20.0
PAUSE_SECONDS = 0.2

ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, UNKNOWN_MEMBER, INVALID_SESSION, REBALANCE = 22, 23, 25, 26, 27
MEMBER_ID_REQUIRED = 79
# 14 to 16: the coordinator is loading, none or another; the others: it could not write to __consumer_offsets just now.
ELSEWHERE = frozenset({-1, 6, REQUEST_TIMED_OUT, 14, 15, 16, 19, 20, 56})
EMPTY, STABLE, MOVING = "Empty", "Stable", frozenset({"PreparingRebalance", "CompletingRebalance"})
UNKNOWN_GENERATION = -1
# Any client may join, as often as it likes and under any name.
MOST_NAMED, MOST_NAME_CHARACTERS = 5, 100

_monotonic = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds that also pass while the machine sleeps, from an unknown start."""
    return time.clock_gettime(_monotonic)


def _text(content: bytes | None) -> str:
    """Return what a member says, whatever its bytes are."""
    return bytes(content or b"").decode(errors="replace")


def _one_line(text: str) -> str:
    """Return a name that any client may have chosen, on one line and not longer than one."""
    return " ".join(text.split())[:MOST_NAME_CHARACTERS]


class Forgotten(Exception):
    """The coordinator does not know this member: its session has ended, or it never had one."""


class Unsettled(Exception):
    """The coordinator did not answer, or is none just now: whoever asks again may be answered."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A place in a settled group: whether it is the leader's, who leads, since when (`now`) it is certain.

    `asked_by` and `rate_asked`: the leader learns which of the others asks it to stop, or for another rate.
    """

    is_leader: bool
    holder: Holder | None
    at: float
    asked_by: Holder | None = None
    rate_asked: RateRequest | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The group from outside: its state in Kafka's word, and whom its leader named; that is told while it is Stable."""

    state: str
    holder: Holder | None
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Where Kafka sees each member, by the member's id."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no member, but had some."""
        return self.state == EMPTY

    @property
    def is_moving(self) -> bool:
        """Whether members come or go just now."""
        return self.state in MOVING


@dataclass(slots=True)
class Member:
    """This process as a member; `wire` is its own, because a broker answers JoinGroup late, and in turn.

    `request`: what it asks of the leader, who reads it whenever the group settles. Each method asks once. Raises
    Forgotten and Unsettled as they say, MissingRight for a missing right, Refused where the group's name serves
    something else.
    """

    wire: Wire
    holder: Holder
    request: StopRequest | RateRequest | None = None
    session_seconds: float = SESSION_SECONDS
    member_id: str = ""
    generation: int = UNKNOWN_GENERATION
    coordinator: int | None = None
    looks: int = 0

    def join(self) -> Seat:
        """Take a place in the group, or keep it in a new generation; waits for those members that are silent."""
        while True:
            answer = self.send(self._joining, JOIN_SECONDS)
            if answer.error_code == MEMBER_ID_REQUIRED:  # KIP-394: who joins first gets an id, and joins again with it
                self.member_id = answer.member_id
            elif answer.error_code == INVALID_SESSION and self.session_seconds < MOST_SESSION_SECONDS:
                self.session_seconds *= 2  # this cluster's group.min.session.timeout.ms is higher; no answer tells it
            elif answer.error_code != REBALANCE:  # the group has moved on meanwhile: join anew
                self._check(answer.error_code)
                self.member_id = answer.member_id
                seat = self._synced(answer)
                if seat is not None:
                    self.generation = answer.generation_id
                    return seat

    def beat(self) -> bool:
        """Say that this member lives; returns whether the group is settled, False if it must join again."""
        answer = self.send(self._beating, ANSWER_SECONDS)
        if answer.error_code in {REBALANCE, ILLEGAL_GENERATION}:
            return False
        self._check(answer.error_code)
        return True

    def leave(self) -> None:
        """Give the place up, if the coordinator can be told; if not, the session's end does it."""
        if not self.member_id:
            return
        form = LeaveGroupRequest.MemberIdentity
        members = [form(member_id=self.member_id, reason="the run has ended")]
        for _ in range(2):  # the second time at the coordinator as it is found anew
            try:
                # From version 3 on members are listed; earlier ones name one in a field of another name.
                code = self.send(
                    lambda: LeaveGroupRequest(group_id=LOCK_GROUP, members=members, min_version=3)
                ).error_code
            except (Unsettled, ReconcilerError):
                break
            if code not in ELSEWHERE:
                break
            self.coordinator = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the place, not the coordinator."""
        self.member_id, self.generation = "", UNKNOWN_GENERATION

    def look_elsewhere(self) -> None:
        """Ask a broker that is not the coordinator who is: one that is cut off from the others goes on believing it is.

        A wrong word does no harm: who is none says so, and the next look corrects it within the session.
        """
        self.looks += 1
        asked_last = {broker for broker, until in self.wire.avoided.items() if until > time.monotonic()}
        others = [broker for broker in self.wire.brokers() if broker != self.coordinator and broker not in asked_last]
        if others:
            self.coordinator = self._found(others[self.looks % len(others)])

    def described(self) -> Described:
        """Return the group as its coordinator tells of it to anybody."""
        answer = self.send(lambda: DescribeGroupsRequest(groups=[LOCK_GROUP]))
        (told,) = answer.groups
        if told.error_code == GROUP_ID_NOT_FOUND:
            return Described("", None)
        self._check(told.error_code)
        hosts = {member.member_id: member.client_host.removeprefix("/") for member in told.members}
        words = [_text(member.member_assignment) for member in told.members if member.member_assignment]
        holder = Holder.read(words[0]) if words else None
        if told.group_state == STABLE and told.members:
            holder = self._placed(holder, told.members)
        return Described(told.group_state, holder, hosts)

    def _placed(self, holder: Holder | None, members: Sequence[Any]) -> Holder:
        """Return that holder with its host as Kafka sees it: the host of the members whose own text names this holder.

        A leader may give out another text than its own, or several members may write the same text. Then Kafka does
        not say which member leads, and the hosts of all of them are named.
        """
        others = [one for one in members if one.member_id != self.member_id]
        writers = [one for one in others if holder is not None and author(_text(one.member_metadata)) == holder]
        seen_at = " or ".join(sorted({one.client_host.removeprefix("/") for one in writers or others}))
        return replace(holder, client_host=seen_at) if holder is not None else Holder.nameless(seen_at)

    def seen(self, holder: Holder | None) -> Holder | None:
        """Return that holder, even one without a name, with the host that Kafka sees it at, as far as Kafka says."""
        with suppress(Unsettled, ReconcilerError):
            (told,) = self.send(lambda: DescribeGroupsRequest(groups=[LOCK_GROUP])).groups
            if told.members and told.error_code == NONE:
                return self._placed(holder, told.members)
        return holder

    def _hosts(self) -> Mapping[str, str]:
        with suppress(Unsettled, ReconcilerError):
            return self.described().hosts
        return {}

    def _synced(self, joined: "JoinGroupResponse") -> Seat | None:
        """Return the place, with the leader's word; None where the group is in motion again."""
        is_leader = joined.leader == joined.member_id
        sent_at = now()
        answer = self.send(partial(self._syncing, joined, is_leader=is_leader), JOIN_SECONDS)
        if answer.error_code in {REBALANCE, ILLEGAL_GENERATION}:
            return None
        self._check(answer.error_code)
        holder = self.holder if is_leader else Holder.read(_text(answer.assignment))
        if not is_leader:
            return Seat(is_leader, holder, sent_at)
        words = {one.member_id: _text(one.metadata) for one in joined.members}
        stops = [(name, one) for name, word in words.items() if (one := StopRequest.read(word)) and self._is_meant(one)]
        rates = [
            (name, rate) for name, word in words.items() if (rate := RateRequest.read(word)) and self._is_meant(rate)
        ]
        # What a member says of itself is its own word; where it is connected from, the coordinator tells.
        hosts = self._hosts() if stops or rates else {}
        asked_by = [replace(one.by, client_host=hosts.get(name, "")) for name, one in stops[:1]]
        rate_asked = [replace(one, by=replace(one.by, client_host=hosts.get(name, ""))) for name, one in rates[-1:]]
        return Seat(is_leader, holder, sent_at, next(iter(asked_by), None), next(iter(rate_asked), None))

    def _is_meant(self, request: StopRequest | RateRequest) -> bool:
        return request.of == self.holder.purpose

    def _joining(self) -> JoinGroupRequest:
        form = JoinGroupRequest.JoinGroupRequestProtocol
        return JoinGroupRequest(
            group_id=LOCK_GROUP,
            session_timeout_ms=int(self.session_seconds * 1000),
            rebalance_timeout_ms=int(REBALANCE_SECONDS * 1000),
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[form(name=PROTOCOL, metadata=(self.request or self.holder).written().encode())],
        )

    def _syncing(self, joined: "JoinGroupResponse", *, is_leader: bool) -> SyncGroupRequest:
        form = SyncGroupRequest.SyncGroupRequestAssignment
        told = [form(member_id=each.member_id, assignment=self._written()) for each in joined.members]
        return SyncGroupRequest(
            group_id=LOCK_GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=told if is_leader else [],
        )

    def _beating(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=LOCK_GROUP, generation_id=self.generation, member_id=self.member_id)

    def _written(self) -> bytes:
        return self.holder.written().encode()

    def send(self, build: "Callable[[], ApiMessage]", seconds: float = ANSWER_SECONDS) -> "ApiMessage":
        """Return the coordinator's answer, whatever it is; raises Unsettled where there is none."""
        if self.coordinator is None:
            self.coordinator = self._found()
        try:
            return self.wire.ask(build, self.coordinator, seconds)
        except (NotSent, NoAnswer, kafka.errors.KafkaError, OSError) as error:
            self.coordinator = None
            raise Unsettled(said(error)) from None

    def _found(self, broker: int | None = None) -> int:
        """Return the group's coordinator, as that broker, or any, knows it."""
        try:
            answer = self.wire.ask(partial(coordinator_question, [LOCK_GROUP]), broker, ANSWER_SECONDS)
        except (NotSent, NoAnswer, kafka.errors.KafkaError, OSError) as error:
            raise Unsettled(said(error)) from None
        (told,) = answer.coordinators
        self._check(told.error_code)
        return int(told.node_id)

    def _check(self, code: int) -> None:
        if code == NONE:
            return
        if code == UNKNOWN_MEMBER:
            raise Forgotten
        if code in ELSEWHERE:
            self.coordinator = None
            raise Unsettled(name_of(code))
        if code in AUTHORIZATION_FAILED:
            raise missing_right("Read", "group", [LOCK_GROUP], "Holding the cluster's lock")
        if code == INCONSISTENT_PROTOCOL:
            raise Refused(
                f"The group {LOCK_GROUP} serves something else than the reconciler's lock. "
                f"Stop its members, then try again{self.others_named()}.",
                code="KR452",
            )
        raise ClusterUnavailable(f"The coordinator of group {LOCK_GROUP} answered {name_of(code)}.")

    def others_named(self) -> str:
        """Return who else is in the group, in words; empty where the coordinator does not say."""
        try:
            (told,) = self.send(lambda: DescribeGroupsRequest(groups=[LOCK_GROUP])).groups
            kind = told.protocol_type
            if not told.members:  # a KIP-848 group is told of in a request of its own
                (told,) = self.send(lambda: ConsumerGroupDescribeRequest(group_ids=[LOCK_GROUP])).groups
                kind = "consumer, KIP-848"
        except (Unsettled, ReconcilerError):
            return ""
        hosts = [(one.client_id, one.client_host.removeprefix("/"), one.member_id) for one in told.members]
        names = [
            f"client {_one_line(client)} on {host}, member {_one_line(name)}"
            for client, host, name in sorted(hosts)
            if name != self.member_id
        ]
        more = f"; {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        listed = "; ".join(names[:MOST_NAMED])
        return f" (protocol type {_one_line(kind)}): {listed}{more}" if listed else ""
