"""Refuses a plan that destroys where the files no longer ask for it: a revert that was merged withdraws the plan.

A plan waits for its approval, and its files go on. What it creates or moves wrongly, the next plan mends; records that
it destroys are gone. So a plan made from other files is compared with what the files ask for now, change by change.
"""

from collections.abc import Callable, Iterator, Sequence

from reconciler.admin.port import Admin
from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.change import AlterConfigs, DeleteTopic, TopicChange, class_of
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.effect import EffectClass
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Refused
from reconciler.model.words import MANY, in_brackets, named_some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.mirrors import with_mirrors

NOT_ASKED = "KR463"


def refuse_withdrawn(
    inputs: Inputs,
    plan: Plan,
    admin: Admin,
    desired: Desired | None,
    *,
    unread: str | None,
    is_asked_again: bool,
    notify: Callable[[str], None],
) -> None:
    """Raise Refused if the plan has still to destroy what the files do not ask for, unless it `is_asked_again`.

    `unread`: what of the files cannot be read; they then ask for nothing. Without files here (`desired` None) nothing
    withdraws a plan. One that takes another plan back is made from no files.
    """
    if desired is None:
        return
    destroying = [change for change in plan.topic_changes if class_of(change) is EffectClass.DESTROYS]
    is_same = unread is None and desired.digest == plan.source.desired_digest
    if not destroying or is_same or plan.source.rolls_back is not None:
        return
    observed = admin.observe()
    due = [change for change in destroying if not all(_is_done(change, key, observed) for key in _keys(change))]
    asked: Sequence[TopicChange] = ()
    if unread is None:
        try:
            wanted = with_mirrors(inputs, desired, observed).desired
            asked = compare(wanted, observed, topic_rules(wanted, observed)).topic_changes
        except InvalidInput as error:
            unread = str(error)
    told = [text for change in due for text in _not_asked(change, asked, observed)]
    if not told:
        return
    named = named_some(told, MANY, "\n")
    if is_asked_again:
        notify(f"the files no longer ask for this; it is done because the plan is asked for by its digest: {named}")
        return
    why = "cannot be read" if unread is not None else "no longer ask for it"
    made = f"commit {plan.source.commit}" if plan.source.commit else "other files"
    raise Refused(
        f"the plan destroys records, and the files in {inputs.root}/{plan.cluster_name} {why}; it was made from {made}."
        f" Nothing has been changed: {named}\n{f'What cannot be read: {unread}' + chr(10) if unread else ''}"
        f"Make a new plan; or, if this is meant all the same, ask for it again: --digest {plan.digest}",
        code=NOT_ASKED,
    )


def _keys(change: TopicChange) -> tuple[str, ...]:
    """Return the configs by which a change destroys; one empty key for a topic that goes as a whole."""
    if not isinstance(change, AlterConfigs):
        return ("",)
    keys = {effect.key for effect in change.effects if effect.kind is EffectClass.DESTROYS}
    return tuple(sorted({*change.set, *change.delete} & keys)) or tuple(sorted({*change.set, *change.delete}))


def _is_done(change: TopicChange, key: str, observed: Cluster) -> bool:
    topic = observed.topics.get(change.topic)
    if isinstance(change, DeleteTopic):
        return topic is None or change.topic_id not in {None, topic.topic_id}
    return isinstance(change, AlterConfigs) and topic is not None and topic.configs.get(key) == change.set.get(key)


def _not_asked(change: TopicChange, asked: Sequence[TopicChange], observed: Cluster) -> Iterator[str]:
    """Yield in words what a change destroys and no change that the files ask for now does."""
    same = [one for one in asked if one.topic == change.topic and type(one) is type(change)]
    for key in _keys(change):
        if any(_does(one, key) == _does(change, key) for one in same) or _is_done(change, key, observed):
            continue
        value = f"{key}={change.set[key]}" if isinstance(change, AlterConfigs) and key in change.set else key
        what = "is deleted" if isinstance(change, DeleteTopic) else f"gets {value}" if "=" in value else f"loses {key}"
        effects = {one.what for one in change.effects if one.kind is EffectClass.DESTROYS and one.key in {None, key}}
        yield f"topic {change.topic} {what}{in_brackets(change.at)}: {'; '.join(sorted(effects)) or 'deletes records'}"


def _does(change: TopicChange, key: str) -> tuple[bool, str | None]:
    """Return whether a change touches that config, and the value that it sets."""
    if not isinstance(change, AlterConfigs):
        return True, None
    return key in change.set or key in change.delete, change.set.get(key)
