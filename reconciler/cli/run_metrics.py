"""`--metrics`: the run's figures in a file, its exit code among them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.command.exits import Exit, exit_of
from reconciler.command.stopping import Terminated
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunEnded, RunProgress, RunResult

if TYPE_CHECKING:
    from reconciler.workflow.run_metrics import MetricsFile

METRICS_HELP = "Keep the run's figures in that Prometheus text file (*.prom, one a cluster); a dry run writes none."


class Measured:
    """A run that may have a file of metrics."""

    def __init__(self, file: "MetricsFile | None") -> None:
        self._file = file

    def also(self, shown: Callable[[RunProgress], None]) -> Callable[[RunProgress], None]:
        """Return a hook that writes where the run stands, beside showing it."""
        if self._file is None:
            return shown
        write = self._file.progress

        def told(seen: RunProgress) -> None:
            shown(seen)
            write(seen)

        return told

    def end(self, code: int, result: RunResult | None) -> None:
        """Write how the run ended; only the first end counts."""
        if self._file is not None:
            file, self._file = self._file, None
            file.end(int(code), result)


@contextmanager
def measured(path: str | None, plan: Plan, warn: Callable[[str], None]) -> Iterator[Measured]:
    """Yield what keeps the file at that path, None for none; whatever ends the run has its exit code written."""
    run = Measured(_begun(path, plan, warn) if path is not None else None)
    try:
        yield run
    except ReconcilerError as error:
        run.end(exit_of(error), error.result if isinstance(error, RunEnded) else None)
        raise
    except KeyboardInterrupt:
        run.end(Exit.INTERRUPTED, None)
        raise
    except Terminated:
        run.end(Exit.TERMINATED, None)
        raise
    except BaseException:
        run.end(Exit.ERROR, None)
        raise


def _begun(path: str, plan: Plan, warn: Callable[[str], None]) -> "MetricsFile":
    from pathlib import Path

    from reconciler.workflow.run_metrics import MetricsFile

    file = MetricsFile(Path(path), plan, warn)
    file.begin()
    return file
