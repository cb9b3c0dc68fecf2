"""The history on a page: its size for a fleet, that its pictures tell the figures, and that lines stay inside."""

import base64
import re
import struct
import zlib
from dataclasses import replace
from random import Random

import pytest
from render.balance_reports import drawn_report
from render.drawn_history import drawn_history
from render.test_as_html import Parsed

from reconciler.balance.model.history import Carried, History
from reconciler.balance.render import as_html, as_tables
from reconciler.balance.render.html_history import HistoryPage
from reconciler.render.as_json import document

MOST_BYTES = 2_000_000


def _cells(picture: str) -> list[list[int]]:
    """Return the levels of a PNG with a palette and four bits a pixel, as any reader would take it."""
    data = base64.b64decode(picture)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, held = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + held)
        chunks[kind] = held
        at += 12 + length
    width, height, bits, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (width, bits, colour) == (168, 4, 3)
    assert chunks[b"tRNS"][0] == 0
    assert list(chunks[b"tRNS"]) == sorted(chunks[b"tRNS"])
    lines, size = zlib.decompress(chunks[b"IDAT"]), width // 2 + 1
    rows = [lines[size * row + 1 : size * (row + 1)] for row in range(height)]
    return [[part for byte in row for part in (byte >> 4, byte & 15)] for row in rows]


def test_the_page_of_a_hundred_clusters_of_fifty_brokers_stays_below_two_megabytes() -> None:
    report = drawn_report(*[50] * 100, has_plan=False, has_history=True)
    page = as_html.balance(report)
    assert len(page.encode()) <= MOST_BYTES
    assert page.count("In by hour of the week") == 100
    assert "<script" not in page
    assert "The first 3 of 50" in page


def test_a_heat_map_has_a_row_for_the_cluster_and_each_broker_and_is_densest_where_most_is_carried() -> None:
    values = tuple(None if hour == 5 else hour for hour in range(168))
    half = tuple(hour // 2 for hour in range(168))
    week = (Carried(None, half, ()), Carried(3, values, ()), Carried(1, half, ()))
    page = HistoryPage(replace(drawn_history(Random(1), 2), hours_of_week=week))
    (drawn,) = page.heat_maps
    whole, first, third = _cells(drawn.picture)
    assert [mark.text for mark in drawn.rows] == ["cluster", "1", "3"]
    assert third[5] == 0
    assert third[167] == whole[167] == max(third)
    assert first[167] < third[167]
    assert first[0] == 1
    assert sorted(third[6:]) == third[6:]
    assert "broker 3, sun 23:00" in drawn.summary


@pytest.mark.parametrize("brokers", [1, 3, 70])
def test_lines_stay_inside_their_charts(brokers: int) -> None:
    page = HistoryPage(drawn_history(Random(2), brokers))
    small = list(page.multiples)
    assert len(small) == min(brokers, 60)
    charts = [(each.width, each.height, each.lines) for each in page.totals]
    charts += [(each.width, each.height, each.lines) for each in small]
    for width, height, lines in charts:
        for line in lines:
            for x, y in _points(line.path):
                assert 0 <= x <= width
                assert 0 <= y <= height


def _points(path: str) -> list[tuple[int, int]]:
    points = []
    for run in re.findall(r"M(\d+) (\d+)(?:l([^M]*)|h1)", path):
        x, y = int(run[0]), int(run[1])
        points.append((x, y))
        steps = [int(each) for each in re.findall(r"-?\d+", run[2])]
        for across, down in zip(steps[::2], steps[1::2], strict=True):
            x, y = x + across, y + down
            points.append((x, y))
    return points


def test_what_is_not_known_is_said_in_every_form() -> None:
    bare = History(drawn_history(Random(1), 1).step)
    report = drawn_report(2, has_plan=False)
    report = replace(report, clusters=(replace(report.clusters[0], history=bare),))
    for shown in (as_html.balance(report), as_tables.balance(report).text(), as_tables.balance(report).markdown()):
        assert "no samples of brokers" in shown
        assert "on one scale" not in shown
        assert "Heat maps" not in shown
    assert Parsed(as_html.balance(report)).open == []


def test_text_tells_the_causes_the_slow_brokers_and_the_week() -> None:
    report = drawn_report(4, has_plan=False, has_history=True)
    text = as_tables.balance(report).text()
    for words in (
        "topic team.topic (new)",
        "leadership from broker 1 to broker 2",
        "the last 7 days against the 7 before",
        "50 points, persistent",
        "mon      tue",
    ):
        assert words in text
    assert re.search(r"broker \d +in +[▁▂▃▄▅▆▇█·]{8} ", text)
    assert '"hoursOfWeek"' in document(report)


def test_the_same_history_is_the_same_page() -> None:
    pages = {as_html.balance(drawn_report(3, has_history=True)) for _ in range(2)}
    assert len(pages) == 1
