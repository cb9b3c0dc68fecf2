"""Finds which clusters are meant where several may be: by their names, by labels, or all of the root."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reconciler.files.load import load_cluster
from reconciler.model.problem import InvalidInput
from reconciler.workflow.inputs import EVERY, Inputs, NotNamed, cluster_name, cluster_names, unknown_cluster

_LABEL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<sign>!=|==?)\s*(?P<value>[^=!]*)")


def clusters_named(inputs: Inputs) -> tuple[str, ...]:
    """Return the clusters that are named, with commas between them, or all of the root for `*`; each once.

    Or those with some labels: `environment=prod,region!=eu`, as kubectl has it. Raises NotNamed where there is none.
    """
    if inputs.cluster == EVERY:
        return cluster_names(inputs.root) or (cluster_name(replace(inputs, cluster=None)),)
    words = tuple(dict.fromkeys(filter(None, map(str.strip, (inputs.cluster or "").split(",")))))
    if any("=" in word for word in words):
        return _labelled(inputs, words)
    if not words:
        raise NotNamed(unknown_cluster(inputs.root, inputs.cluster or ""))
    return words


def _labelled(inputs: Inputs, words: Sequence[str]) -> tuple[str, ...]:
    """Return the clusters whose labels are as each of the words says."""
    terms = [term for word in words if (term := _LABEL.fullmatch(word))]
    if len(terms) < len(words):
        way_out = "write KEY=VALUE or KEY!=VALUE, with commas between, and no names beside them"
        raise NotNamed(f"--cluster {inputs.cluster!r} is not understood: {way_out}")
    labels = {name: _labels(inputs.root, name) for name in cluster_names(inputs.root)}
    found = tuple(name for name, has in labels.items() if has is None or all(_holds(term, has) for term in terms))
    if not found:
        shown = [f"{name} ({', '.join(map('='.join, sorted((has or {}).items())))})" for name, has in labels.items()]
        there = f"; it has {', '.join(shown)}" if shown else ""
        raise NotNamed(f"no cluster of {inputs.root} has the labels {', '.join(words)}: check -C and --cluster{there}")
    return found


def _labels(root: str, name: str) -> Mapping[str, str] | None:
    """Return a cluster's labels; None where its document is broken: it may be meant, so it is looked at, and fails."""
    try:
        return load_cluster(Path(root), name).labels
    except InvalidInput:
        return None


def _holds(term: re.Match[str], labels: Mapping[str, str]) -> bool:
    is_so = labels.get(term["key"]) == term["value"]
    return is_so if term["sign"] != "!=" else not is_so
