"""Orders what a reviewer reads: what stops `apply` first, then warnings by what ignoring them costs."""

from collections.abc import Iterable

from reconciler.model.problem import Problem, Severity
from reconciler.render.facts import by_weight

_GRAVEST = """
KR817 partitions without a leader
KR816 a disk that fills up
KR825 a log dir that may
KR853 data that is gone
KR832 keys of a compacted topic
KR833 records that a group never sees
KR828 a throttle of which nobody knows whether it lets a move end
KR811 no throttle at all
KR831 groups that are assigned anew
KR815 a leader that is not elected
KR807 racks that are not known
"""
_LIGHTEST = """
KR842 how even it becomes
KR803
KR804
KR805
KR819
KR841
KR814 who else elects leaders
KR802 what is on its way already
"""
_GRAVE, _LIGHT = ([line.split()[0] for line in text.strip().splitlines()] for text in (_GRAVEST, _LIGHTEST))
_RANKS = {code: rank for rank, code in enumerate([*_GRAVE, "", *_LIGHT])}


def in_review_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return what stops `apply` first, then warnings by what ignoring them costs; equals by code, place and text."""
    return tuple(sorted(by_weight(problems), key=_rank))


def _rank(problem: Problem) -> tuple[bool, int]:
    return problem.severity is Severity.WARNING, _RANKS.get(problem.code, len(_GRAVE))
