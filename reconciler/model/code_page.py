"""What a code means, for whoever meets it: the page that a link, an editor and code scanning show."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much what a code stands for weighs: an error stops the verb, a violation `apply`, the others nothing."""

    ERROR = "error"
    VIOLATION = "violation"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class CodePage:
    """A code in words: what it means, an example (YAML that raises it, or the sentence as it is told), what to do."""

    code: str
    title: str
    level: Level
    meaning: str
    example: str
    is_yaml: bool
    remedy: str
