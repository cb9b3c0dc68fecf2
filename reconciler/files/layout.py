"""Reads which file of a cluster declares what, chooses files for new topics, and adds documents to files."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from re import split

from reconciler.files.bounded import file_bytes
from reconciler.files.desired_writer import OTHERS, new_files
from reconciler.files.load import yaml_files
from reconciler.files.strict_yaml import MAX_BYTES, YamlMap, read_yaml
from reconciler.files.topic_document import declared_in
from reconciler.model.desired import DesiredTopic

CLASSES_FILE = "classes.yaml"
_NEW_FOLDER = "topics/"
_BEGIN = "---"
_LONGEST = 200
"""Characters of a topic's name that a file's name takes: a file system takes 255 bytes, those of a temporary too."""


@dataclass(frozen=True, slots=True)
class LaidFile:
    """A file below a cluster's folder, by its path there with slashes, and what its documents declare.

    `topics`: the class that each topic names, by the topic's name. `is_own`: no link leads to it, so that what is added
    to it is declared for this cluster alone.
    """

    name: str
    content: bytes
    topics: Mapping[str, str | None]
    classes: Mapping[str, DesiredTopic]
    is_own: bool = True

    @property
    def folder(self) -> str:
        """The folder that it is in, below the cluster's, as it stands before a name."""
        return self.name[: self.name.rfind("/") + 1]


def laid_files(root: Path, cluster: str) -> Sequence[LaidFile]:
    """Return the files that declare what is desired of that cluster, which `load_desired` has found to be in order."""
    folder = root / cluster
    return [_laid(path, folder) for path in yaml_files(root, cluster)]


def _laid(path: Path, folder: Path) -> LaidFile:
    content, name = file_bytes(path, MAX_BYTES), path.relative_to(folder)
    topics: dict[str, str | None] = {}
    classes: dict[str, DesiredTopic] = {}
    for document in read_yaml(content, str(name)).documents:
        if not isinstance(document, YamlMap):
            continue
        written = document["metadata"].get("name")
        if document["kind"] == "Topic" and written is not None:
            topics[written] = document["spec"].get("class")
        elif document["kind"] == "TopicClass":
            classes[written] = declared_in(document, [])
    is_own = not any((folder / part).is_symlink() for part in (name, *name.parents[:-1]))
    return LaidFile(name.as_posix(), content, topics, classes, is_own)


def homes(names: Iterable[str], files: Sequence[LaidFile]) -> Mapping[str, str]:
    """Return the file that each new topic goes to, among these or a new one beside them.

    It is that of the topics whose names share the most words with its own from the first on, the file with most of
    these. Where each topic has a file of its own, so has this one. A name that shares no word with any other goes where
    all topics are, if that is one file, else to a new one, in the folder that all are below.
    """
    own = [file for file in files if file.is_own and file.topics]
    by_name = {file.name: file for file in own}
    index = _most(own, lambda file, _topic: file.name)
    shared = _shared_folder(own)
    only = own[0] if len(own) == 1 and len(own[0].topics) > 1 else None
    found: dict[str, str] = {}
    for name in names:
        home = next((by_name[index[words]] for words in _beginnings(name) if words in index), only)
        folder = shared if home is None else home.folder
        if _has_a_file_each(own, folder):
            found[name] = f"{folder}{name.lstrip('.')[:_LONGEST] or OTHERS}.yaml"
        elif home is not None:
            found[name] = home.name
    rest = [name for name in names if name not in found]
    for file, group in new_files(rest, shared, [file.name for file in files]).items():
        found |= dict.fromkeys(group, file)
    return found


def usual_classes(names: Iterable[str], files: Sequence[LaidFile]) -> Mapping[str, str]:
    """Return, for each new topic that has such, the class of most topics that share the most words with it."""
    index = _most(files, lambda file, topic: file.topics[topic])
    found = ((name, next((index[words] for words in _beginnings(name) if words in index), None)) for name in names)
    return {name: usual for name, usual in found if usual is not None}


def class_home(files: Sequence[LaidFile]) -> str:
    """Return the file that new classes go to: that of most classes, else a new one."""
    holding = [file for file in files if file.is_own and file.classes]
    taken = {file.name for file in files}
    free = (f"classes-{number}.yaml" for number in range(2, len(files) + 3))
    if not holding:
        return next(name for name in (CLASSES_FILE, *free) if name not in taken)
    return min(holding, key=lambda file: (-len(file.classes), file.name)).name


def with_added(content: bytes, documents: str) -> bytes | None:
    """Return the file's content with documents behind it; None where what it declares would not stay the very same.

    Every byte stays. Lines end as the file's own do.
    """
    ends = b"\r\n" if b"\r\n" in content else b"\n"
    gap = b"" if not content or content.endswith(b"\n") else ends
    added = f"{_BEGIN}\n{documents}".encode().replace(b"\n", ends)
    made = content + gap + added
    before, after, alone = (read_yaml(each, "") for each in (content, made, documents.encode()))
    is_kept = not after.problems and after.documents == [*before.documents, *alone.documents]
    return made if is_kept else None


def _most(files: Sequence[LaidFile], told: Callable[[LaidFile, str], str | None]) -> Mapping[Sequence[str], str]:
    """Return, by the words that names begin with, what is told of most topics that do; of equals, the first by name."""
    count: dict[Sequence[str], Counter[str]] = defaultdict(Counter)
    for file in files:
        for topic in file.topics:
            found = told(file, topic)
            if found is not None:
                for words in _beginnings(topic):
                    count[words][found] += 1
    return {words: min(held, key=lambda each: (-held[each], each)) for words, held in count.items()}


def _beginnings(name: str) -> Iterator[Sequence[str]]:
    """Yield the words of a name, then all but the last, and so on."""
    words = tuple(word for word in split("[._-]", name.lower()) if word)
    yield from (words[:length] for length in range(len(words), 0, -1))


def _has_a_file_each(files: Sequence[LaidFile], folder: str) -> bool:
    """Whether the topics in that folder, of which there are some, are each in a file that is named after it."""
    there = [file for file in files if file.folder == folder]
    return len(there) > 1 and all([*file.topics] == [PurePosixPath(file.name).stem] for file in there)


def _shared_folder(files: Sequence[LaidFile]) -> str:
    """Return the folder that all files with topics are in, or below; where there are none, a new one."""
    parts = [file.folder.split("/")[:-1] for file in files]
    shared = takewhile(lambda steps: len({*steps}) == 1, zip(*parts, strict=False))
    return "".join(f"{steps[0]}/" for steps in shared) if files else _NEW_FOLDER
