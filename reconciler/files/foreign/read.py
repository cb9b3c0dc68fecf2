"""Files of other tools, told apart by what they hold, as topics; every problem at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from reconciler.files.foreign import jikkou
from reconciler.files.foreign.json_forms import (
    HCL,
    KAFKA_JSON,
    TERRAFORM,
    is_hcl,
    json_form,
    read_kafka_json,
    read_terraform,
)
from reconciler.files.foreign.topicctl import read_topicctl
from reconciler.files.foreign.topics import COLLIDING, MAX_FACTOR, SKIPPED, WRONG, Part, Reading, keep
from reconciler.files.inside import required_inside
from reconciler.files.load import SUFFIXES, by_place
from reconciler.files.paths import files_below, is_folder
from reconciler.files.raw import STDIN, display_name, invalid, read_bytes
from reconciler.files.strict_yaml import YamlMap, read_yaml
from reconciler.model.desired import DesiredTopic
from reconciler.model.problem import InvalidInput, Location, Problem

STRIMZI, JIKKOU, TOPICCTL = "strimzi", "jikkou", "topicctl"
TOOL_NAMES = "Strimzi, Jikkou, topicctl, Terraform or kafka-reassign-partitions"
_STRIMZI_API = "kafka.strimzi.io/"
_CLUSTER_LABEL, _MANAGED = "strimzi.io/cluster", "strimzi.io/managed"
_STRIMZI_SPEC = frozenset({"topicName", "partitions", "replicas", "config"})
_READ = (*SUFFIXES, ".json", ".tfstate")
_HCL = ".tf"
_LINK = "is a link that leads out of {}, and is not read: name the file itself"


def read_foreign(paths: Iterable[str], tool: str | None = None) -> Reading:
    """Return the topics of these files, and of all files in these folders whose names say YAML, JSON or a state.

    `-` is stdin. `tool`: the one whose documents are read, the others left out with a warning; None takes them all.
    Raises InvalidInput with every problem by place.
    """
    reading = Reading()
    documents = [found for path in _files(paths) for found in _parts(path, reading)]
    maps = jikkou.config_maps([part for found, part in documents if found == JIKKOU])
    for found, part in documents:
        if found is None:
            message = f"is nothing of {TOOL_NAMES}, and is left out"
            part.warn("", f"the document {message}{_hint(part)}", SKIPPED)
        elif tool is not None and found != tool:
            part.warn("", f"the document is {found}'s, and is left out", SKIPPED)
        elif found == JIKKOU:
            jikkou.read_jikkou(part, maps)
        else:
            _READERS[found](part)
    _refuse_repeated(reading)
    if reading.problems:
        raise InvalidInput(sorted(reading.problems, key=by_place), is_below_root=False)
    reading.warnings.sort(key=by_place)
    return reading


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not is_folder(path, if_unknown=False):  # reading it says why
            yield path
            continue
        there = files_below(path)
        found = [str(each) for each in there if each.suffix in _READ]
        if not found:
            modules = [each for each in there if each.suffix == _HCL]
            raise invalid(WRONG, f"{modules[0]}: {HCL}" if modules else f"{path} holds no YAML or JSON files")
        for each in found:
            required_inside(Path(path), Path(each), f"{each} {_LINK.format(path)}", None)
        yield from found


def _parts(path: str, reading: Reading) -> Iterator[tuple[str | None, Part]]:
    """Yield the documents of a file, each with whose it is; those within a Kubernetes list one by one."""
    name = display_name(path)
    content = read_bytes(path, "topic file", WRONG)
    form = json_form(content, name, reading)
    if form is not None:
        yield form
        return
    if is_hcl(path, content):
        reading.problems.append(Problem(WRONG, HCL, Location(name, 1)))
        return
    read = read_yaml(content, name)
    reading.problems += read.problems
    if read.problems:
        return
    for document in read.documents:
        if isinstance(document, YamlMap):
            yield from ((_tool(part), part) for part in _listed(Part(document, "", reading)))
        elif document is not None:
            reading.problems.append(Problem(WRONG, "a document must be a mapping", Location(name, 1)))


def _listed(part: Part) -> Iterator[Part]:
    api, kind = str(part.entries.get("apiVersion")), str(part.entries.get("kind"))
    is_list = kind == "List" or (kind == "KafkaTopicList" and api.startswith(_STRIMZI_API))
    if not is_list:
        yield part
        return
    yield from (replace(item, path="") for item in part.parts("items"))


def _tool(part: Part) -> str | None:
    """Return whose document it is: apiVersion says it, and topicctl's have `meta` and no kind."""
    api = str(part.entries.get("apiVersion", ""))
    if api.startswith(_STRIMZI_API):
        return STRIMZI
    if api.startswith((jikkou.API, jikkou.CORE_API)):
        return JIKKOU
    is_topicctl = "meta" in part.entries and "spec" in part.entries and "kind" not in part.entries
    # Its cluster file stands beside its topics.
    return TOPICCTL if is_topicctl and "bootstrapAddrs" not in part.entries.part("spec") else None


def _hint(part: Part) -> str:
    api = str(part.entries.get("apiVersion", ""))
    close = get_close_matches(api.partition("/")[0], ["kafka.strimzi.io", "kafka.jikkou.io"], n=1)
    return f"; did you mean apiVersion {close[0]}/…?" if close else ""


def _read_strimzi(document: Part) -> None:
    """Add the topic of one KafkaTopic, by the rules of the Topic Operator: `spec.topicName` wins over its name."""
    if document.text("kind") != "KafkaTopic":
        document.warn("kind", f"{document.text('kind')} is no KafkaTopic and is left out", SKIPPED)
        return
    metadata, spec = document.part("metadata"), document.part("spec")
    name = spec.text("topicName") or metadata.text("name")
    if name is None:
        metadata.wrong("name", "is missing, and so is spec.topicName")
        return
    if metadata.part("annotations").flag(_MANAGED) is False:
        document.warn("", f"topic {name} is annotated {_MANAGED}: false and is left out", SKIPPED)
        return
    spec.refuse_unknown(_STRIMZI_SPEC)
    labels = dict(metadata.labels("labels"))
    cluster = labels.pop(_CLUSTER_LABEL, None)
    topic = DesiredTopic(
        name,
        partitions=spec.count("partitions"),
        replication_factor=spec.count("replicas", MAX_FACTOR),
        config=spec.configs("config"),
        labels=labels,
    )
    keep(document.reading, topic, document, cluster)


def _refuse_repeated(reading: Reading) -> None:
    seen: dict[tuple[str | None, str], tuple[str, Location]] = {}
    for each in reading.topics:
        name, key = each.topic.name, (each.cluster, each.topic.name.replace(".", "_"))
        first, at = seen.setdefault(key, (name, each.at))
        if at is each.at:
            continue
        same = "is declared twice" if first == name else f"collides with {first}: {COLLIDING}"
        reading.problems.append(Problem(WRONG, f"topic {name} {same}, first at {at}", each.at))


_READERS: Mapping[str, Callable[[Part], None]] = {
    STRIMZI: _read_strimzi,
    TOPICCTL: read_topicctl,
    TERRAFORM: read_terraform,
    KAFKA_JSON: read_kafka_json,
}
