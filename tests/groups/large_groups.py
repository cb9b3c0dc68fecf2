"""Groups large enough to tell an assignor's cost: 20,000 partitions over four overlapping sets of topics."""

from reconciler.model.assignment import SubscribedTopic, Subscriber

MEMBERS = 200
TOPICS = 200
PARTITIONS = 100


def four_sets(
    members: int = MEMBERS, topics: int = TOPICS, partitions: int = PARTITIONS
) -> tuple[list[Subscriber], dict[str, SubscribedTopic]]:
    """Return members of four kinds in turn; each kind has half of the topics, a quarter of them with the next."""
    names = [f"t{number:04d}" for number in range(topics)]
    quarter = topics // 4
    sets = [tuple(names[(kind * quarter + place) % topics] for place in range(2 * quarter)) for kind in range(4)]
    return (
        [Subscriber(f"consumer-{number:04d}", sets[number % 4]) for number in range(members)],
        {name: SubscribedTopic(name, partitions) for name in names},
    )


def one_more(members: list[Subscriber]) -> Subscriber:
    """Return a member that joins them, of the first kind."""
    return Subscriber("consumer-new", members[0].subscription)
