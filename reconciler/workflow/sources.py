"""Reads what a verb works on: the desired state and its commit, and the cluster itself or a snapshot of it."""

import logging
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path

from reconciler.admin.holder import is_this_process
from reconciler.admin.port import Admin, ProgressHook
from reconciler.admin.waits import WAITS
from reconciler.files.bounded import file_bytes
from reconciler.files.paths import is_folder
from reconciler.model.client_properties import cautions
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.problem import ClusterUnavailable, InvalidInput, MissingRight, Problem
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_name, cluster_names, require_cluster, unknown_cluster

logger = logging.getLogger(__name__)

BOOTSTRAP = "bootstrap.servers"
_INSTEAD = Problem(
    "KR133",
    "This verb needs the Cluster document alone, or none: --bootstrap-server HOST:PORT or --client FILE serve instead",
)
_SECONDS = 10
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit")
"""A repository may name programs of its own; to read a commit must run none of them."""
_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CEILING_DIRECTORIES")
"""The variables that Git gets: where it is, where the user's settings are, and where to look no further."""
_GIT_VARIABLES = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
"""A repository that lacks objects would fetch them, by a program that its settings name."""


def desired_state(inputs: Inputs) -> Desired:
    """Return all that is declared for the cluster; raises InvalidInput with every problem in every file."""
    from reconciler.files.load import load_desired

    name = cluster_name(inputs)
    require_cluster(inputs.root, name)
    return load_desired(Path(inputs.root), name)


def declared(inputs: Inputs, name: str) -> Desired | None:
    """Return what is declared for that cluster, None where the root does not know it."""
    if name not in cluster_names(inputs.root):
        return None
    return desired_state(replace(inputs, cluster=name))


def declared_cluster(inputs: Inputs, name: str) -> Desired | None:
    """Return what the Cluster document of that cluster declares; files of topics may be in any state, and are not read.

    For what stops, looks or cleans up. None where the root does not know the cluster and, with a warning, where its
    document is broken, but the caller brings a client; else InvalidInput says what is wrong, and what serves instead.
    """
    from reconciler.files.load import load_cluster

    root = Path(inputs.root)
    if not is_folder(root / name):
        return None
    try:
        return Desired(load_cluster(root, name))
    except InvalidInput as error:
        if not inputs.is_client_given:
            raise InvalidInput((*error.problems, _INSTEAD)) from None
        logger.warning("nothing that is declared of the cluster is used: %s", _first_of(error, inputs.root))
        return None


def cluster_meant(inputs: Inputs) -> Desired | None:
    """Return the same of the cluster that is named, or of the only one; None where the caller brings one unnamed."""
    return None if inputs.is_client_given and not inputs.cluster else declared_cluster(inputs, cluster_name(inputs))


def declared_as_far(inputs: Inputs, name: str) -> tuple[Desired | None, str | None]:
    """Return all that is declared or, where files of topics are broken, the Cluster document alone, and what is wrong.

    What is wrong with that document counts as in `declared_cluster`.
    """
    desired = declared_cluster(inputs, name)
    try:
        return (desired if desired is None else desired_state(replace(inputs, cluster=name))), None
    except InvalidInput as error:
        return desired, f"the topics that are declared: {_first_of(error, inputs.root)}; run validate"


def _first_of(error: InvalidInput, root: str) -> str:
    from reconciler.render.as_text import input_problem

    first, *more = error.problems
    others = f" and {len(more)} more" if more else ""
    return f"{input_problem(first, root=root)}{others}"


def observed_state(inputs: Inputs, desired: Desired | None, progress: ProgressHook | None = None) -> Cluster:
    """Return the snapshot that is named, else what the cluster shows now."""
    if inputs.state:
        from reconciler.files.snapshot import read_snapshot

        return read_snapshot(inputs.state)
    from reconciler.model.table_maker import in_rows

    with cluster_admin(inputs, desired) as admin:
        warn_of_run(admin)
        return in_rows(admin.observe(progress=progress))


def observed_with_groups(inputs: Inputs, *, progress: ProgressHook | None = None) -> Cluster:
    """Return what the cluster shows now, consumer groups included; no cluster.yaml is needed with a client given."""
    with cluster_admin(inputs, cluster_meant(inputs)) as admin:
        warn_of_run(admin)
        return admin.observe(has_groups=True, progress=progress)


def warn_of_run(admin: Admin) -> None:
    """Log a warning where a run is changing the cluster; whoever may not see the lock's group is not told.

    This process is none: the cluster may hear late that it has given the lock back.

    To be called before the cluster is observed. Whoever asks for a group in a new cluster has Kafka create
    `__consumer_offsets`, as the lock of the first run would: its replicas are to count in the first plan already.
    """
    try:
        holder = admin.lock_holder()
    except MissingRight:
        return
    except ClusterUnavailable as error:
        logger.warning("no run can start now: %s", error)
        return
    if holder is not None and not is_this_process(holder):
        logger.warning("a run is changing the cluster: %s. Once it has ended, look again.", holder)


@contextmanager
def cluster_admin(inputs: Inputs, desired: Desired | None) -> Iterator[Admin]:
    """Yield the cluster, to be closed at the end: what the caller gave, else what its files say."""
    admin = _open(inputs, desired)
    try:
        yield admin
    finally:
        admin.close()


def client_cautions(inputs: Inputs, desired: Desired | None) -> tuple[Problem, ...]:
    """Return warnings of what the client properties leave open; none where no cluster is reached with them.

    For what is kept, or read by a program: whoever connects logs them too.
    """
    has_client = inputs.is_client_given or (desired is not None and desired.cluster.client is not None)
    return cautions(_properties(inputs, desired)) if has_client and not inputs.state else ()


def simulated(inputs: Inputs, desired: Desired | None) -> DesiredCluster | None:
    """Return the cluster where it is the file that its document names; a client that the caller gave comes first."""
    is_file = not inputs.is_client_given and desired is not None and desired.cluster.simulation is not None
    return desired.cluster if desired is not None and is_file else None


def _open(inputs: Inputs, desired: Desired | None) -> Admin:
    cluster = simulated(inputs, desired)
    WAITS.is_real = cluster is None
    if cluster is not None:
        return _simulated(Path(inputs.root), cluster)
    properties = _properties(inputs, desired)
    from reconciler.admin.client import connect

    return connect(properties)


def _simulated(root: Path, cluster: DesiredCluster) -> Admin:
    from reconciler.admin.simulated import SimulatedAdmin
    from reconciler.files.inside import SIMULATION, required_inside
    from reconciler.files.lock_file import LockFile
    from reconciler.files.snapshot import read_snapshot, write_snapshot

    def path() -> Path:
        """Return the file, looked at anew each time: a link may have come into its place."""
        return required_inside(root, root / cluster.name / (cluster.simulation or ""), SIMULATION, cluster.at)

    return SimulatedAdmin(
        read_snapshot(path()),
        save=lambda state: write_snapshot(state, path()),
        load=lambda: read_snapshot(path()),
        locks=LockFile(path()),
    )


def _properties(inputs: Inputs, desired: Desired | None) -> Mapping[str, str]:
    """Return the client properties: of `--client` or else the cluster's file, with `--bootstrap-server` on top."""
    from reconciler.files.properties import read_properties, resolve_client

    given: Mapping[str, str] = {}
    if inputs.client:
        given = read_properties(Path(inputs.client), inputs.environ)
    elif desired is not None and desired.cluster.client is not None:
        folder = Path(inputs.root) / desired.cluster.name
        given = resolve_client(desired.cluster.client, folder, inputs.environ, Path(inputs.root))
    if inputs.bootstrap_server:
        return {**given, BOOTSTRAP: inputs.bootstrap_server}
    if not given and desired is None and inputs.cluster:
        raise NotNamed(f"{unknown_cluster(inputs.root, inputs.cluster)}, or give --bootstrap-server or --client")
    if not given and desired is not None:
        at = f" ({desired.cluster.at})" if desired.cluster.at is not None else ""
        raise NotNamed(
            f"the Cluster document of {desired.cluster.name}{at} does not say how to reach it: write spec.client, or"
            " give --client FILE or --bootstrap-server HOST:PORT"
        )
    if not given:
        raise NotNamed("no cluster to talk to: name one with --cluster, --client FILE or --bootstrap-server HOST:PORT")
    return given


def source_commit(root: Path) -> str | None:
    """Return the commit, None without Git or a repository, or where YAML files differ from what is committed.

    A YAML file that Git ignores is in no commit, so it differs, and so does one that a filter of Git changes. Git is
    asked for names alone: `git status` would run filters and other programs that the repository's settings name.
    """
    if _is_itself_a_repository(Path(os.path.realpath(root))):
        return None
    commit = _git(root, "rev-parse", "--verify", "HEAD^{commit}")
    tree = None if commit is None else _git(root, "ls-tree", "-r", "-z", commit)
    if tree is None:
        return None
    entries = (entry.split("\t", 1) for entry in tree.split("\0") if "\t" in entry)
    committed = {name: about.split()[2] for about, name in entries if _is_yaml(name)}
    try:
        is_same = all(committed.pop(name, "") in _blob_ids(root / name) for name in _yaml_names(root))
    except OSError:
        return None
    return commit if is_same and not committed else None


def _yaml_names(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        below = Path(folder).relative_to(root)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (name for each in (*names, *linked) if _is_yaml(name := (below / each).as_posix()))


def _is_yaml(name: str) -> bool:
    """Whether desired state may be in the file of that name: hidden folders are not read."""
    from reconciler.files.load import SUFFIXES

    return name.lower().endswith(SUFFIXES) and not any(part.startswith(".") for part in name.split("/")[:-1])


def _blob_ids(file: Path) -> Iterator[str]:
    """Yield the names that Git gives to the file's content, as it is and with the ends of lines that Git keeps."""
    content = os.fsencode(file.readlink()) if file.is_symlink() else file_bytes(file)
    for each in (content, content.replace(b"\r\n", b"\n")):
        blob = b"blob %d\0%b" % (len(each), each)
        yield from (sha1(blob, usedforsecurity=False).hexdigest(), sha256(blob).hexdigest())


@cache
def tracked_names(folder: Path) -> frozenset[str] | None:
    """Return the names of the files in that folder that Git tracks; None in a checkout of which Git does not tell."""
    if not any(os.path.lexists(parent / name) for parent in (folder, *folder.parents) for name in (".git", "HEAD")):
        return frozenset()
    names = _git(folder, "ls-files", "-z") if os.path.lexists(folder) else ""
    return frozenset(names.split("\0")) if names is not None else None


def default_branch(folder: Path) -> str | None:
    """Return the branch that a clone of `origin` checks out, as Git has it; None if Git does not know one."""
    prefix = "origin/"
    name = _git(folder, "symbolic-ref", "--short", f"refs/remotes/{prefix}HEAD")
    return name.removeprefix(prefix) if name and name.startswith(prefix) else None


def _is_itself_a_repository(root: Path) -> bool:
    """Whether files below the nearest `.git` could make up a repository, which is one that a commit brought here.

    Git takes any folder for one that holds HEAD, objects and refs, and these can be committed as any file can.
    """
    for folder in (root, *root.parents):
        if os.path.lexists(folder / "HEAD"):
            return True
        if (folder / ".git").exists():
            return False
    return False


def _git(root: Path, *arguments: str) -> str | None:
    """Return what Git prints; it gets no secret of this process, fetches nothing, and runs no hook or pager."""
    command = ("git", "--no-pager", *_SETTINGS, "-C", str(root), *arguments)
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ} | _GIT_VARIABLES
    try:
        ended = subprocess.run(command, capture_output=True, env=environment, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words and a path, no shell
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(ended.stdout).rstrip("\n") if ended.returncode == 0 else None
