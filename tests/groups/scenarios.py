"""Random consumer groups over time, in the form of a scenario file: topics, and a few rebalances.

The same seed gives the same scenario on any machine. Small on purpose: what goes wrong in a large group shows in a
small one, and Kafka's own classes then answer for hundreds of them in a few seconds.
"""

import base64
import random
import uuid
from collections.abc import Callable
from typing import NamedTuple, NotRequired, TypedDict

RACKS = ("rack-a", "rack-b", "rack-c", "rack-d")


class TopicForm(TypedDict):
    name: str
    id: str
    partitions: int
    racks: NotRequired[list[list[str]]]


class MemberForm(TypedDict):
    id: str
    topics: list[str]
    instance: NotRequired[str]
    rack: NotRequired[str]
    owned: NotRequired[dict[str, list[int]]]
    generation: NotRequired[int]


class StepForm(TypedDict):
    members: list[MemberForm]
    change: NotRequired[list[str]]
    topics: NotRequired[list[TopicForm]]


# The functional form, because `class` is a keyword.
ScenarioForm = TypedDict(
    "ScenarioForm", {"id": str, "class": str, "topics": list[TopicForm], "steps": list[StepForm]}, total=True
)


class Kind(NamedTuple):
    """What sets the scenarios of one class apart; shares are between 0 and 1."""

    members: tuple[int, int] = (1, 6)
    topics: tuple[int, int] = (1, 4)
    partitions: tuple[int, int] = (1, 12)
    steps: tuple[int, int] = (2, 5)
    unequal: bool = False
    static: float = 0.0
    racks: bool = False
    odd: bool = False


KINDS: dict[str, Kind] = {
    "small-equal-1step": Kind(steps=(1, 1)),
    "small-equal-multi": Kind(),
    "small-unequal-multi": Kind(unequal=True),
    "static-multi": Kind(unequal=True, static=0.6),
    "rack-equal-multi": Kind(racks=True),
    "rack-unequal-multi": Kind(unequal=True, static=0.2, racks=True),
    "odd-claims-and-topics": Kind(unequal=True, static=0.2, odd=True),
    "larger-equal": Kind((10, 40), (1, 6), (1, 60), (1, 3), static=0.1),
    "larger-unequal": Kind((8, 20), (2, 6), (1, 30), (1, 3), unequal=True, static=0.1),
    "many-topics": Kind((2, 8), (8, 40), (1, 3), (1, 4), unequal=True),
    "many-topics-equal": Kind((1, 4), (10, 60), (1, 4), (3, 6)),
}


def scenarios(count: int, first_seed: int = 0) -> list[ScenarioForm]:
    """Return so many scenarios, the classes in turn, each from its own seed."""
    return [scenario(seed) for seed in range(first_seed, first_seed + count)]


def scenario(seed: int) -> ScenarioForm:
    """Return the scenario of that seed: its class is `seed` modulo the number of classes."""
    name = list(KINDS)[seed % len(KINDS)]
    return _Maker(random.Random(f"group {seed}"), KINDS[name]).scenario(f"r{seed:04d}", name)


class _Maker:
    """Makes one scenario; what it hands out is new each time, never edited afterwards."""

    def __init__(self, rng: random.Random, kind: Kind) -> None:
        self.rng = rng
        self.kind = kind
        self.has_real_names = rng.random() < 0.4
        self.joined = 0
        self.topics = [self._topic(number) for number in range(rng.randint(*kind.topics))]
        self.common = self._some_topics()
        self.members = [self._member() for _ in range(rng.randint(*kind.members))]

    def scenario(self, scenario_id: str, name: str) -> ScenarioForm:
        first = [topic.copy() for topic in self.topics]
        steps: list[StepForm] = [{"members": self._sent()}]
        steps.extend(self._step() for _ in range(self.rng.randint(*self.kind.steps) - 1))
        return {"id": scenario_id, "class": name, "topics": first, "steps": steps}

    def _step(self) -> StepForm:
        before = [topic.copy() for topic in self.topics]
        told = [self.rng.choice(self._changes())() for _ in range(self.rng.choice((0, 1, 1, 1, 2, 3)))]
        step: StepForm = {"change": [change for change in told if change], "members": self._sent()}
        if self.topics != before:
            step["topics"] = [topic.copy() for topic in self.topics]
        return step

    def _changes(self) -> list[Callable[[], str]]:
        common = [self._join, self._join, self._leave, self._leave, self._grow]
        if self.kind.unequal:
            common += [self._subscribe, self._subscribe]
        if self.kind.static:
            common += [self._restart, self._restart]
        if self.kind.odd:
            common += [self._delete_topic, self._replace_all, self._everyone_subscribes]
        return common

    def _join(self) -> str:
        self.members.insert(self.rng.randint(0, len(self.members)), self._member())
        return "join"

    def _leave(self) -> str:
        if len(self.members) < 2:
            return ""
        return f"leave {self.members.pop(self.rng.randrange(len(self.members)))['id']}"

    def _grow(self) -> str:
        place = self.rng.randrange(len(self.topics))
        topic = self.topics[place]
        more = self.rng.randint(1, 4)
        grown: TopicForm = {**topic, "partitions": topic["partitions"] + more}
        if "racks" in topic:
            grown["racks"] = topic["racks"] + [self._replica_racks(number) for number in range(more)]
        self.topics[place] = grown
        return f"grow {topic['name']} to {grown['partitions']}"

    def _subscribe(self) -> str:
        place = self.rng.randrange(len(self.members))
        self.members[place] = {**self.members[place], "topics": self._some_topics()}
        return f"{self.members[place]['id']} subscribes anew"

    def _restart(self) -> str:
        static = [place for place, member in enumerate(self.members) if "instance" in member]
        if not static:
            return ""
        place = self.rng.choice(static)
        old = self.members[place]["id"]
        self.members[place] = {**self.members[place], "id": self._new_id()}
        return f"{old} comes back as {self.members[place]['id']}"

    def _delete_topic(self) -> str:
        if len(self.topics) < 2:
            return ""
        return f"delete {self.topics.pop(self.rng.randrange(len(self.topics)))['name']}"

    def _replace_all(self) -> str:
        self.members = [self._member() for _ in self.members]
        return "all members are new"

    def _everyone_subscribes(self) -> str:
        self.members = [{**member, "topics": list(self.common)} for member in self.members]
        return "all subscribe to the same"

    def _sent(self) -> list[MemberForm]:
        sent = [member.copy() for member in self.members]
        if self.kind.odd and self.rng.random() < 0.5:
            for member in sent:
                self._claim(member)
        return sent

    def _claim(self, member: MemberForm) -> None:
        """Let the member say that it owns something: perhaps what others own too, or what is not there."""
        if self.rng.random() < 0.3:
            return
        claimed: dict[str, list[int]] = {}
        for topic in self.topics:
            if self.rng.random() < 0.6:
                count = self.rng.randint(0, topic["partitions"])
                claimed[topic["name"]] = sorted(self.rng.sample(range(topic["partitions"]), count))
        member["owned"] = {name: owned for name, owned in claimed.items() if owned}
        member["generation"] = self.rng.choice((3, 4, 5, 5, 5))

    def _topic(self, number: int) -> TopicForm:
        partitions = self.rng.randint(*self.kind.partitions)
        if self.rng.random() < 0.2 and number:
            partitions = self.kind.partitions[1] // 2 + 1
        name = f"{self.rng.choice(('orders', 'pay', 'x'))}.{uuid.UUID(int=self.rng.getrandbits(128)).hex[:9]}"
        topic: TopicForm = {
            "name": name if self.has_real_names else f"t{number}",
            "id": base64.urlsafe_b64encode(self.rng.randbytes(16)).rstrip(b"=").decode(),
            "partitions": partitions,
        }
        if self.kind.racks and self.rng.random() < 0.9:
            topic["racks"] = [self._replica_racks(partition) for partition in range(partitions)]
        return topic

    def _replica_racks(self, partition: int) -> list[str]:
        factor = self.rng.choice((1, 2, 2, 3))
        first = partition if self.rng.random() < 0.7 else self.rng.randrange(len(RACKS))
        return [RACKS[(first + replica) % len(RACKS)] for replica in range(factor)]

    def _some_topics(self) -> list[str]:
        names = [topic["name"] for topic in self.topics]
        if self.kind.odd and self.rng.random() < 0.25:
            names.append("no-such-topic")
        if self.kind.odd and self.rng.random() < 0.08:
            return []
        return sorted(self.rng.sample(names, self.rng.randint(1, len(names))))

    def _member(self) -> MemberForm:
        member: MemberForm = {
            "id": self._new_id(),
            "topics": self._some_topics() if self.kind.unequal else list(self.common),
        }
        if self.rng.random() < self.kind.static:
            member["instance"] = f"inst-{self.rng.randrange(10_000)}-{self.joined}"
        if self.kind.racks and self.rng.random() < 0.85:
            member["rack"] = self.rng.choice(RACKS[:3])
        return member

    def _new_id(self) -> str:
        self.joined += 1
        if self.has_real_names:
            return f"consumer-g-{self.rng.randint(1, 9)}-{uuid.UUID(int=self.rng.getrandbits(128), version=4)}"
        return f"{self.rng.choice(('consumer', 'm', 'C'))}-{self.joined}"
