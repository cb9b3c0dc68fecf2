"""Gives an edited plan the digest and id that fit it, by the rule that schemas/plan.json states."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(value: object) -> str:
    """Return the value as JSON with sorted keys, no spaces, and no escapes that JSON does not need."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{canonical(value[key])}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    return json.dumps(value, ensure_ascii=False)


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 over all of a plan but its id and digest."""
    rest = {key: value for key, value in document.items() if key not in {"id", "digest"}}
    return f"sha256:{hashlib.sha256(canonical(rest).encode()).hexdigest()}"


def resealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan with the digest and the id that fit it."""
    digest = digest_of(document)
    return {**document, "id": digest[7:15], "digest": digest}
