"""Fills what every page shares: its templates, and the policy by which it runs and asks for what it holds alone."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from reconciler.render.html_charts import Chart
from reconciler.render.html_tables import Cell, Table

HERE = "reconciler.render"
"""Where the parts of all pages are; a wing has the templates of its own pages."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the summary, large."""

    title: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: its charts, and the tables with the same figures."""

    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    note: str = ""


def rendered(template: str, package: str = HERE, **values: object) -> str:
    """Return the page that a template of this package makes of the values; whatever they hold is only text on it."""
    return _environment(package).get_template(template).render(**values)


@cache
def text_of(name: str) -> str:
    """Return a style or a script as it stands between its tags: a page allows this text and no other, by its hash."""
    return _environment(HERE).get_template(name).render()


def digest(text: str) -> str:
    """Return the hash by which a page's policy names a text of its own."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _environment(package: str) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(HERE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
