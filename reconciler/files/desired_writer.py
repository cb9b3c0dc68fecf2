"""Writes found topics and classes as YAML for people: one document a topic, one line where that is short."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count

from reconciler.files.semantics import semantic_problems
from reconciler.files.strict_yaml import read_yaml, visible
from reconciler.files.units import config_text
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Placement
from reconciler.model.imported import Adopted, FoundClass
from reconciler.model.topic_configs import TOPIC_CONFIGS

TOPICS_IN_ONE_FILE = 50
MOST_IN_A_FILE, FEWEST_IN_A_FILE = 200, 3
WIDTH = 118
OTHERS = "other"
_API = "apiVersion: reconciler/v1\n"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
# What YAML 1.1 readers, editors among them, take for something else than text.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_TIMES = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
_SIZES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
CONFIG_KEY = re.compile(r"[a-zA-Z0-9._-]+")
_SEPARATOR = re.compile(r"[._-]")
Fields = dict[str, object]
"""Fields of a document as YAML, by name; None for one that is not written."""


@lru_cache(maxsize=1 << 14)
def is_writable(key: str, value: str) -> bool:
    """Whether a config of a topic, once it is written, is read as it is and refused for nothing."""
    if not CONFIG_KEY.fullmatch(key):
        return False
    read = read_yaml(f"{{{scalar(key)}: {config_scalar(key, value)}}}".encode(errors="replace"), "")
    if read.problems or not read.documents or key not in read.documents[0]:
        return False
    try:
        is_same = config_text(key, read.documents[0][key]) == value
    except ValueError:
        return False
    alone = DesiredTopic("t", config={key: value}, custom_configs=frozenset({key} - TOPIC_CONFIGS.keys()))
    return is_same and not any(semantic_problems(Desired(DesiredCluster("c"), {"t": alone})))


def class_documents(classes: Iterable[FoundClass]) -> str:
    """Return all classes, one document each."""
    return "---\n".join(_class_document(each) for each in classes)


def first_homes(adopted: Adopted) -> Mapping[str, str]:
    """Return the file of each topic, left out or not, where there are none yet: those with one beginning together."""
    files = _split(sorted({*adopted.topics, *adopted.left_out}))
    return {name: file for file, names in files.items() for name in names}


def topic_files(
    adopted: Adopted, homes: Mapping[str, str], notes: Mapping[str, Sequence[str]] | None = None
) -> Mapping[str, str]:
    """Return the topics' documents by file name. `homes`: the file of each; what is in none is not written.

    `notes` are comments above a topic's document, beside those that its deviations make. What is left out of the
    desired state stands there too, as a comment.
    """
    said: dict[str, list[str]] = defaultdict(list)
    for name, lines in (notes or {}).items():
        said[name] += lines
    for each in adopted.deviations:
        if each.topic is not None:
            said[each.topic].append(f"Left out: {each.message}" if each.is_left_out else each.message)
    of_class = {each.name: each for each in (*adopted.joined, *adopted.classes)}
    texts = {
        name: _comments(said[name]) + _topic_document(topic, of_class.get(adopted.class_of.get(name, "")))
        for name, topic in adopted.topics.items()
    }
    # A document that is no more than comments needs no separator, and must not begin one.
    left_out = {
        name: _comments([*said[name], *_topic_document(topic, None).splitlines()])
        for name, topic in adopted.left_out.items()
    }
    files: dict[str, list[str]] = defaultdict(list)
    for name, file in sorted(homes.items()):
        files[file].append(name)
    return {file: _joined(names, texts, left_out) for file, names in sorted(files.items())}


def _joined(names: Sequence[str], texts: Mapping[str, str], left_out: Mapping[str, str]) -> str:
    written = "---\n".join(texts[name] for name in names if name in texts)
    return "\n".join(part for part in (written, *(left_out[name] for name in names if name in left_out)) if part)


def _comments(lines: Iterable[str]) -> str:
    """Return comment lines; what no file may hold, and no reader sees, is spelled out."""
    return "".join(f"# {visible(line)}\n" for line in lines)


def new_files(names: Sequence[str], folder: str, taken: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Return names by the new file that takes them, for a folder with files of its own: none of those taken.

    `folder`: below the cluster's, as it stands before a file's name.
    """
    there = dict.fromkeys(name.rpartition(".")[0] for name in taken)
    files: dict[str, Sequence[str]] = {}
    for file, group in _by_beginning(sorted(names), 1).items():
        files[_free({**there, **files}, f"{folder}{file}")] = group
    return {f"{file}.yaml": group for file, group in files.items()}


def _split(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    if len(names) <= TOPICS_IN_ONE_FILE:
        return {"topics.yaml": names} if names else {}
    return {f"topics/{file}.yaml": group for file, group in _by_beginning(names, 1).items()}


def _by_beginning(names: Sequence[str], depth: int) -> Mapping[str, Sequence[str]]:
    """Return names by their first words; beginnings of few names go together, long lists are cut again."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[_beginning(name, depth)].append(name)
    lonely = sorted(name for group in found.values() if len(group) < FEWEST_IN_A_FILE for name in group)
    files: dict[str, Sequence[str]] = {}
    for beginning, group in sorted(found.items()):
        if len(group) < FEWEST_IN_A_FILE:
            continue
        if len(group) > MOST_IN_A_FILE and any(_beginning(name, depth + 1) != beginning for name in group):
            files |= {_free(files, file): some for file, some in _by_beginning(group, depth + 1).items()}
        else:
            files |= _numbered(_free(files, beginning), group)
    if lonely:
        rest = OTHERS if depth == 1 else f"{_beginning(lonely[0], depth - 1)}.{OTHERS}"
        files |= _numbered(_free(files, rest), lonely)
    return files


def _beginning(name: str, words: int) -> str:
    """Return the first words of a name in lower case, fit to be a file's name."""
    parts = [part for part in _SEPARATOR.split(re.sub(r"[^a-zA-Z0-9._-]", "_", name).lower()) if part]
    return ".".join(parts[:words]) or OTHERS


def _numbered(file: str, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    if len(names) <= MOST_IN_A_FILE:
        return {file: names}
    chunks = range(0, len(names), MOST_IN_A_FILE)
    return {f"{file}-{number:03}": names[at : at + MOST_IN_A_FILE] for number, at in enumerate(chunks, start=1)}


def _free(files: Mapping[str, object], file: str) -> str:
    """Return that file's name, or the next one that is not taken."""
    names = chain([file], (f"{file}-{number}" for number in count(2)))
    return next(name for name in names if name not in files)


def _class_document(found: FoundClass) -> str:
    fields = _rules(found.replication_factor, found.placement) | _configs(found.config)
    topics = "1 topic" if found.topics == 1 else f"{found.topics} topics"
    head = f"# {topics} when it was imported.\n{_API}kind: TopicClass\nmetadata: {{name: {scalar(found.name)}}}\n"
    return head + _block(fields)


def _topic_document(topic: DesiredTopic, found: FoundClass | None) -> str:
    metadata = {
        "name": scalar(topic.name),
        "labels": _flow({scalar(key): scalar(each) for key, each in sorted(topic.labels.items())}),
    }
    fields: Fields = {"state": "absent" if topic.is_absent else None, "partitions": topic.partitions}
    if found is None:
        fields |= _rules(topic.replication_factor, topic.placement) | _configs(topic.config)
    else:
        own = {key: value for key, value in topic.config.items() if found.config.get(key) != value}
        factor = topic.replication_factor if found.replication_factor is None else None
        rules = _rules(factor, Placement(assignment=topic.placement.assignment))
        fields = {"class": scalar(found.name)} | fields | rules | _configs(own)
    line = f"spec: {_flow(fields) or '{}'}\n"
    return f"{_API}kind: Topic\nmetadata: {_flow(metadata)}\n{line if len(line) <= WIDTH else _block(fields)}"


def _block(fields: Fields) -> str:
    return "spec:\n" + "".join(f"  {key}: {value}\n" for key, value in fields.items() if value is not None)


def _flow(fields: Mapping[str, object]) -> str | None:
    """Return the fields that are written as a mapping on one line; None where none is."""
    written = ", ".join(f"{key}: {value}" for key, value in fields.items() if value is not None)
    return f"{{{written}}}" if written else None


def _rules(factor: int | None, placement: Placement) -> Fields:
    only, leader = _listed(placement.racks_only), _listed(placement.racks_leader)
    racks = _flow({"spread": placement.racks_spread, "only": only, "leader": leader})
    assignment = None if placement.assignment is None else [list(replicas) for replicas in placement.assignment]
    return {"replicationFactor": factor, "placement": _flow({"racks": racks, "assignment": assignment})}


def _configs(config: Mapping[str, str | None]) -> Fields:
    """Return the configs, and the list of those that no known Kafka has."""
    pairs = {scalar(key): config_scalar(key, value) for key, value in sorted(config.items())}
    return {"config": _flow(pairs), "customConfigs": _listed(config.keys() - TOPIC_CONFIGS.keys() or None)}


def _listed(texts: Iterable[str] | None) -> str | None:
    return None if texts is None else f"[{', '.join(map(scalar, sorted(texts)))}]"


def config_scalar(key: str, value: str | None) -> str:
    """Return a config's value as YAML, whole times and sizes with their unit."""
    if value is None:
        return "null"
    if value in {"true", "false"}:
        return value
    if not _PLAIN_NUMBER.fullmatch(value) or value == "-0":
        return scalar(value)
    units = _TIMES if key.endswith(".ms") else _SIZES if key.endswith(".bytes") else ()
    return next(_with_unit(int(value), units), value)


def _with_unit(number: int, units: Iterable[tuple[str, int]]) -> Iterator[str]:
    return (f"{number // size}{unit}" for unit, size in units if number >= size and number % size == 0)


def scalar(text: str) -> str:
    """Return a text as YAML, quoted where it could be taken for anything else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
