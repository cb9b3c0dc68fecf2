"""The rights that `.github/RIGHTS.md` has an operator give: its commands, as Kafka's ACLs."""

import re
import shlex
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

PROGRAM = "reconciler"
PAGE = Path(__file__).resolve().parents[3] / ".github" / "RIGHTS.md"
COMMAND = re.compile(r"^kafka-acls --add --allow-principal User:NAME (.+)$", re.MULTILINE)
CLUSTER = (ResourceType.BROKER, "kafka-cluster")


def least_rights(user: str) -> list[AclBinding]:
    """Return what all commands of the page give a user together."""
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return [
        AclBinding(*resource, literal, f"User:{user}", "*", operation, allow)
        for command in COMMAND.findall(PAGE.read_text("utf-8"))
        for resource, operations in [_read(shlex.split(command, comments=True))]
        for operation in operations
    ]


def _read(words: list[str]) -> tuple[tuple[ResourceType, str], list[AclOperation]]:
    """Return the resource of a command, which it names last, and the operations before it."""
    if words[-1] == "--cluster":
        resource, words = CLUSTER, words[:-1]
    else:
        *words, kind, name = words
        resource = ResourceType[kind.removeprefix("--").upper()], name
    assert words[::2] == ["--operation"] * (len(words) // 2), words
    return resource, [AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()] for name in words[1::2]]
