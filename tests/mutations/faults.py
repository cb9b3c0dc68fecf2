"""Faults planted in running code: a function's source with one piece exchanged, put in the place of its own."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType


@dataclass(frozen=True, slots=True)
class Fault:
    """In `function`, as `module.name` or `module.Class.name` within a package, `right` is exchanged for `wrong`.

    `shown_by` names what is known to show it, to be looked at first.
    """

    what: str
    function: str
    right: str
    wrong: str
    shown_by: str = ""


@contextmanager
def planted(fault: Fault, package: str) -> Iterator[None]:
    """Run what follows with the fault; every caller of the function has it, however it was imported."""
    function = _function(fault.function, package)
    own = function.__code__
    function.__code__ = _with_fault(function, fault).__code__
    try:
        yield
    finally:
        function.__code__ = own
        _function(fault.function, package)  # forgets what a cache holds of it


def _function(path: str, package: str) -> FunctionType:
    module, *names = path.split(".")
    found: object = import_module(f"{package}.{module}")
    for name in names:
        found = inspect.getattr_static(found, name)
    if isinstance(found, property | cached_property):
        found = found.fget if isinstance(found, property) else found.func
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    if hasattr(found, "cache_clear") and hasattr(found, "__wrapped__"):
        found.cache_clear()
        found = found.__wrapped__
    assert isinstance(found, FunctionType), f"{path} is no function"
    return found


def _with_fault(function: FunctionType, fault: Fault) -> FunctionType:
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(fault.right) == 1, f"{fault.function} has {source.count(fault.right)} of: {fault.right}"
    tree = ast.parse(source.replace(fault.right, fault.wrong))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    names = dict(function.__globals__)
    exec(compile(tree, inspect.getfile(function), "exec"), names)  # noqa: S102 - our own source, changed on purpose
    made = names[definition.name]
    assert isinstance(made, FunctionType)
    return made
