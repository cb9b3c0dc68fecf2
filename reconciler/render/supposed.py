"""Says what a plan supposes, how partitions fare then, and what would make a refused plan fit."""

from collections.abc import Iterator, Sequence

from reconciler.model.problem import Edit, Remedy
from reconciler.model.what_if import Affected, Health, WhatIf
from reconciler.model.words import counted, number
from reconciler.render.escape import code_span, sentence, visible
from reconciler.render.facts import place

FITS = "It would fit if"
NOTHING_FITS = "No single change of the desired state, and no pair, was found that would make it fit."
_LABEL = 10
_NAMED = 3


def what_if_lines(supposed: WhatIf) -> list[str]:
    """Return the head of a supposed plan: what is supposed, what is assumed, and how partitions fare."""
    lines = [f"What if: {visible(', '.join(supposed.suppositions))}"]
    lines += [_labelled("assumed", words) for words in supposed.assumptions]
    lines.append(_labelled("at once", "; ".join(_at_once(supposed))))
    lines += [_labelled("then", "; ".join(told)) for told in [list(_then(supposed))] if told]
    return lines


def what_if_markdown(supposed: WhatIf) -> str:
    """Return the same as a list, for a comment."""
    items = [f"**What if** {', '.join(code_span(each) for each in supposed.suppositions)}? Never applied."]
    items += [f"- assumed: {sentence(words)}" for words in supposed.assumptions]
    items.append(f"- at once: {sentence('; '.join(_at_once(supposed)))}")
    items += [f"- once the plan has run: {sentence('; '.join(told))}" for told in [list(_then(supposed))] if told]
    return "\n".join(items)


def remedy_lines(remedies: Sequence[Remedy], *, root: str = "") -> list[str]:
    """Return one line a remedy: `It would fit if: limits.diskUse were 83% (cluster.yaml:31)`."""
    lines = []
    for remedy in remedies:
        told = " and ".join(f"{edit.words}{_at(edit, root)}" for edit in remedy.edits)
        lines.append(visible(told + ("" if remedy.is_planned else " (by the rules; not planned through)")))
    return [f"{FITS if position == 0 else '             or if'}: {line}" for position, line in enumerate(lines)]


def remedies_markdown(remedies: Sequence[Remedy]) -> list[str]:
    """Return the same as one block, nothing where there is no remedy."""
    if not remedies:
        return []
    items = []
    for remedy in remedies:
        edits = [
            sentence(edit.words) + (f" · {code_span(place(edit.at))}" if place(edit.at) else "")
            for edit in remedy.edits
        ]
        items.append(f"- {' and '.join(edits)}" + ("" if remedy.is_planned else " (by the rules; not planned through)"))
    return ["\n".join([f"{FITS}:", *items])]


def _at(edit: Edit, root: str) -> str:
    where = place(edit.at, root)
    return f" ({where})" if where else ""


def _labelled(label: str, words: str) -> str:
    return f"  {label:<{_LABEL}}{visible(words)}"


def _at_once(supposed: WhatIf) -> Iterator[str]:
    if supposed.at_once == supposed.before:
        yield "nothing becomes under-replicated or unavailable"
        was = list(_words(supposed.before))
        yield from [f"as it is now, {'; '.join(was)}"] if was else []
        return
    yield from _words(supposed.at_once)
    if supposed.before.under_replicated.count:
        yield f"{number(supposed.before.under_replicated.count)} are under-replicated already"


def _then(supposed: WhatIf) -> Iterator[str]:
    """Yield how partitions are in the end, nothing where they were well all the time."""
    after = supposed.after
    if after is None or (after == supposed.at_once and not after.under_replicated.count):
        return
    yield from list(_words(after)) or ["every partition has all its replicas in sync"]
    if after.offline.count:
        yield "a partition without a leader cannot be copied before one of its brokers is back"


def _words(found: Health) -> Iterator[str]:
    if found.under_replicated.count:
        yield f"{_count(found.under_replicated)} under-replicated"
    if found.under_min_isr.count:
        yield f"{_count(found.under_min_isr)} refuse producers with acks=all{_names(found.under_min_isr)}"
    if found.offline.count:
        yield f"{_count(found.offline)} offline{_names(found.offline)}"


def _count(found: Affected) -> str:
    return counted(found.count, "partition")


def _names(found: Affected) -> str:
    more = ", ..." if found.count > _NAMED else ""
    return f" ({', '.join(found.some[:_NAMED])}{more})"
