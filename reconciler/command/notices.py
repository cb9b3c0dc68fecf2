"""Tells others what `diff` found: a message to a webhook, figures for Prometheus. What was found stays what it is."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit, exit_of, tell_error
from reconciler.command.options import Asked
from reconciler.command.several import OfEach, worst
from reconciler.command.terminal import hide, tell, without_secrets
from reconciler.model.diagnosis import FindingCounts
from reconciler.model.notice import SLACK
from reconciler.model.problem import ReconcilerError
from reconciler.model.several import ClusterOutcome
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.files.webhook import Webhook
    from reconciler.model.notice import Notice, NoticeOfCluster
    from reconciler.workflow.diff import Compared

DRIFT, DIFFERENCES, ALWAYS = "drift", "differences", "always"
WHEN = (DRIFT, DIFFERENCES, ALWAYS)
VARIABLE = "RECONCILER_DIFF_NOTIFY"


@dataclass(slots=True)
class Notices:
    """Whom to tell, and when; `findings`: what doctor found of each cluster, which is asked where figures are kept."""

    asked: Asked
    webhook: "Webhook | None"
    when: str = DRIFT
    metrics: Path | None = None
    findings: dict[str, FindingCounts] = field(default_factory=dict)

    @property
    def is_asked(self) -> bool:
        """Whether there is anybody to tell."""
        return self.webhook is not None or self.metrics is not None

    def examine(self, inputs: Inputs, name: str) -> None:
        """Have doctor look at a cluster, where figures are kept; what keeps it from it is a warning."""
        if self.metrics is None:
            return
        from reconciler.workflow.drift import findings_of

        try:
            self.findings[name] = findings_of(inputs)
        except ReconcilerError as error:
            tell(f"warning: {name}: doctor could not look, and the metrics lack what it finds: {error} ({error.code})")

    def tell_all(self, each: "OfEach[Compared]", summary: Iterable[ClusterOutcome]) -> Exit:
        """Tell what came of each cluster; return 0, or 1 where somebody could not be told."""
        if not self.is_asked:
            return Exit.DONE
        from reconciler.render import as_notice

        clusters = [
            as_notice.of_cluster(one, found.changes, found.fields, found.undeclared, found.owners)
            if (found := each.made.get(one.cluster)) is not None
            else as_notice.of_failure(one, without_secrets(each.reasons[one.cluster]))
            for one in summary
        ]
        return worst([self._figures(clusters), self._message(as_notice.notice(clusters))])

    def tell_failure(self, name: str, error: ReconcilerError) -> None:
        """Tell that the one cluster that is meant could not be looked at."""
        from reconciler.command.several import failure

        self.tell_all(OfEach({}, {name: error}, (name,)), [failure(name, error)])

    def _figures(self, clusters: "Iterable[NoticeOfCluster]") -> Exit:
        from reconciler.workflow.drift import write_figures

        try:
            if self.metrics is not None:
                write_figures(self.metrics, clusters, self.findings)
        except ReconcilerError as error:
            return self._told(error)
        return Exit.DONE

    def _message(self, made: "Notice") -> Exit:
        is_to_tell = {DRIFT: made.is_drift, DIFFERENCES: made.is_different, ALWAYS: True}[self.when]
        if self.webhook is None or not is_to_tell:
            return Exit.DONE
        from reconciler.files.webhook import send
        from reconciler.render.as_notice import as_bytes

        try:
            send(self.webhook, as_bytes(made, is_for_slack=self.webhook.form == SLACK))
        except ReconcilerError as error:
            return self._told(error)
        tell(f"Told {self.webhook.shown}.")
        return Exit.DONE

    def _told(self, error: ReconcilerError) -> Exit:
        tell_error(error, exit_of(error), is_json=self.asked.is_json)
        return exit_of(error)


def notices(
    asked: Asked,
    url: str | None,
    *,
    form: str | None,
    when: str | None,
    metrics: str | None,
    environ: Mapping[str, str] = os.environ,
) -> Notices:
    """Return whom to tell; raises UsageError for what is not meant so, InvalidInput for a URL that cannot be used."""
    if url is None:
        if VARIABLE in environ:  # a pipeline whose secret is not there
            tell(f"warning: {VARIABLE} is set and empty: nobody is told")
        elif form is not None or when is not None:
            raise click.UsageError("--notify-as and --notify-on are for --notify URL.")
        return Notices(asked, None, metrics=Path(metrics) if metrics else None)
    from reconciler.files.webhook import webhook

    to = webhook(url, form, environ)
    hide(to.secrets)
    return Notices(asked, to, when or DRIFT, Path(metrics) if metrics else None)
