"""Holds what a code means, for whoever meets it: the page that a link, an editor and code scanning show."""

from dataclasses import dataclass

from reconciler.model.problem import Severity


@dataclass(frozen=True, slots=True)
class CodePage:
    """A code in words: what it means, an example (YAML that raises it, or the sentence as it is told), what to do."""

    code: str
    title: str
    severity: Severity
    meaning: str
    example: str
    is_yaml: bool
    remedy: str
