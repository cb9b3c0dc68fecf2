"""The comment line that tells an editor which schema a YAML file keeps to."""

from collections.abc import Mapping

SCHEMA_FILES: Mapping[str, str] = {
    "Cluster": "cluster.json",
    "Topic": "topic.json",
    "TopicClass": "topic-class.json",
}


def modeline(schemas: str | None, kind: str) -> str:
    """Return that line for documents of one kind, with the schemas in that folder; nothing for None."""
    if schemas is None:
        return ""
    return f"# yaml-language-server: $schema={schemas}/{SCHEMA_FILES[kind]}\n"
