"""The message of drift, however much differs and whatever names hold."""

import json

from reconciler.model.change import Changes, CreateTopic
from reconciler.model.cluster import Topic
from reconciler.model.several import ClusterOutcome
from reconciler.render import as_notice


def test_a_message_has_its_bounds_however_much_differs() -> None:
    changes = Changes(tuple(CreateTopic(f"{number:03}" + "&" * 200, 1, 1) for number in range(60)))
    lone = [Topic(f"lone{number:03}", ()) for number in range(60)]
    told = [
        as_notice.of_cluster(ClusterOutcome(f"c{number}", "60 differences", 2), changes, (), lone, {})
        for number in range(40)
    ]
    (one, *_) = told
    assert (one.differences, one.undeclared_topics, len(one.told), one.untold) == (60, 60, 20, 100)
    assert any(each.subject == "lone000" for each in one.told)
    text = json.loads(as_notice.as_bytes(as_notice.notice(told), is_for_slack=True))["text"]
    assert "lone009: no file declares it, and it stays; 0 partitions\n  and 100 more```" in text
    assert len(text) < 40_000
    assert "more clusters: reconciler diff shows them" in text
