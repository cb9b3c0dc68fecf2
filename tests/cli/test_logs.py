import logging
from collections.abc import Iterator

import pytest

from reconciler.command.logs import set_up_logs


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """Put both loggers back."""
    loggers = [logging.getLogger(name) for name in ("reconciler", "kafka")]
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("verbosity", "told"), [(0, ["warning"]), (1, ["warning", "info"]), (2, ["warning", "info", "debug"])]
)
def test_our_own_log_says_more_when_asked(capsys: pytest.CaptureFixture[str], verbosity: int, told: list[str]) -> None:
    set_up_logs(verbosity)
    logger = logging.getLogger("reconciler.admin")
    logger.warning("one \x1b[31m")
    logger.info("two")
    logger.debug("three")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == told
    assert lines[0] == "warning: one \\u001b[31m"


def test_the_clients_log_is_shown_only_with_vv(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(1)
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    logging.getLogger("kafka.conn").debug("hello")
    assert capsys.readouterr().err == ""
    set_up_logs(2)
    logging.getLogger("kafka.conn").debug("hello")
    assert capsys.readouterr().err == "debug: hello\n"


def test_a_later_call_says_nothing_on_an_earlier_ones_stream(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    set_up_logs(2)
    set_up_logs(0)
    logging.getLogger("kafka.conn").debug("hello")
    logging.getLogger("kafka.conn").warning("hello")
    assert capsys.readouterr().err == ""
    set_up_logs(2)
    set_up_logs(2)
    logging.getLogger("kafka.conn").debug("hello")
    assert capsys.readouterr().err == "debug: hello\n"
