"""Declares `reconciler init`: writes a layout to fill in, the demo, or the pipelines of a repository."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import FILES, JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb

if TYPE_CHECKING:
    from reconciler.workflow.pipeline_jobs import JobSettings
    from reconciler.workflow.pipelines import Pipelines

NEXT = {
    "github": "Make three environments for each cluster, to which only the default branch may deploy: "
    "kafka-read-CLUSTER, kafka-apply-CLUSTER with required reviewers, kafka-continue-CLUSTER. Put its KAFKA_PASSWORD "
    "there, as a secret.",
    "gitlab": "Add to .gitlab-ci.yml: include: [{local: .gitlab/reconciler/pipeline.yml}]. Make protected variables "
    "for each cluster, such as KAFKA_PASSWORD, of the scopes kafka/CLUSTER/read and kafka/CLUSTER/apply; protect the "
    "latter environment, too.",
    "kubernetes": "Make a Secret reconciler-CLUSTER for each cluster; its keys are variables, such as KAFKA_PASSWORD. "
    "Mirrors need a Secret reconciler-read-CLUSTER of the cluster at the other end, too. "
    "After a new folder or Mirror document run this again; a folder adds a file, and a line to kustomization.yaml.",
}
"""What is left to do by hand, for each system that there are pipelines for."""
USUAL = "KAFKA_USERNAME and KAFKA_PASSWORD"


@verb(
    "init",
    outputs=(TEXT, JSON),
    examples="""
        reconciler init --demo
        reconciler init --cluster prod-eu
        reconciler init --ci github --index https://packages.example.com/simple
    """,
    notes="""
        With --ci, DIR is the repository's top, by default this folder, and the root (-C) lies below it. Jobs
        on GitHub and GitLab, which hold a password, install this program from --wheel or --index. The default branch is
        the one that Git has for origin, else main.
    """,
)
@click.argument("folder", metavar="[DIR]", required=False)
@option("--demo", is_flag=True, help="Write a simulated cluster with its desired state.")
@option(
    "--ci",
    type=click.Choice(sorted(NEXT)),
    help="Write pipelines that plan, ask for a review and apply, cluster by cluster.",
)
@option("--wheel", metavar="FILE", type=FILES, help="With --ci: the wheel that jobs install; kept in the repository.")
@option("--index", metavar="URL", help="With --ci: your index of packages, from which jobs install it.")
@option(
    "--secret", metavar="NAME", multiple=True, help=f"With --ci github: a secret that jobs get; {USUAL} without it."
)
@option("--runs-on", metavar="LABEL", multiple=True, help="With --ci: a label of the runners, a tag on GitLab.")
@option("--id-token", metavar="AUDIENCE", help="With --ci: give jobs the CI's identity token, for OAuth and AWS.")
@option("--extras", metavar="NAME", help="With --ci: the extra that jobs install: aws, loads, spark or all.")
def command(
    asked: Asked,
    folder: str | None,
    *,
    demo: bool,
    ci: str | None,
    wheel: str | None,
    index: str | None,
    secret: tuple[str, ...],
    runs_on: tuple[str, ...],
    id_token: str | None,
    extras: str | None,
) -> int:
    """Write a commented layout into DIR, by default the root (-C); what a person wrote is never overwritten."""
    if ci is not None:
        if demo or asked.inputs.cluster:
            raise click.UsageError("--ci is for all clusters of the root: leave --demo and --cluster out.")
        needs_source = ci != "kubernetes"
        if (wheel is not None) + (index is not None) != needs_source:
            raise click.UsageError(
                f"--ci {ci} needs --wheel FILE or --index URL: no release is published, and jobs hold a password."
                if needs_source
                else "--ci kubernetes takes neither --wheel nor --index: its jobs run an image."
            )
        if ci == "kubernetes" and (secret or runs_on or id_token or extras):
            raise click.UsageError("--ci kubernetes has no runners: its jobs run an image, with a Secret's keys.")
        if ci == "gitlab" and secret:
            raise click.UsageError("--ci gitlab needs no --secret: a job has the variables of its environment.")
        from reconciler.workflow.pipeline_jobs import JobSettings

        settings = JobSettings(wheel, index or "", secret, runs_on, id_token or "", extras or "")
        return _pipelines(asked, Path(folder or "."), ci, settings)
    if wheel or index or secret or runs_on or id_token or extras:
        raise click.UsageError("--wheel, --index, --secret, --runs-on, --id-token and --extras need --ci.")
    from reconciler.render.as_json import document
    from reconciler.workflow.demo import write_demo
    from reconciler.workflow.init import write_layout

    root = folder or asked.inputs.root
    written = (write_demo if demo else write_layout)(root, asked.inputs.cluster)
    if asked.is_json:
        write(document(written))
    elif written.cluster is None:
        tell(f"Wrote {written.folder}: {', '.join(written.files)}. Put in how to reach your cluster, then:")
        tell(f"  {_again('plan', root, written.name)}")
    else:
        seen = written.cluster
        racks = len({broker.rack for broker in seen.brokers.values()})
        partitions = sum(len(topic.partitions) for topic in seen.topics.values())
        tell(
            f"Wrote {written.folder}: {len(seen.brokers)} simulated brokers, {racks} racks, {len(seen.topics)} topics, "
            f"{partitions} partitions. Some things are wrong on purpose:  {_again('plan', root, written.name)}"
        )
    return Exit.DONE


def _again(verb: str, root: str, name: str) -> str:
    from reconciler.workflow.inputs import DEFAULT_ROOT

    where = "" if root == DEFAULT_ROOT else f" -C {root}"
    return f"reconciler {verb}{where} --cluster {name}"


def _pipelines(asked: Asked, folder: Path, ci: str, settings: "JobSettings") -> int:
    from reconciler.render.as_json import document
    from reconciler.workflow.pipelines import Edited, write_pipelines

    try:
        made = write_pipelines(folder, asked.inputs.root, ci, settings)
    except Edited as error:
        for difference in error.differences.values():
            tell(difference.rstrip("\n"))
        raise
    if asked.is_json:
        write(document(made))
    else:
        _tell_pipelines(made, asked.inputs.root)
    return Exit.DONE


def _tell_pipelines(made: "Pipelines", root: str) -> None:
    from reconciler.model.words import counted, named_some

    several = counted(len(made.files), "file")
    if made.written or made.removed:
        tell(f"Wrote {len(made.written)} of {several} for {made.system} into {made.folder}:")
        for name in (*made.written, *(f"{name} (removed)" for name in made.removed)):
            tell(f"  {name}")
    else:
        tell(f"Nothing to write: {several} for {made.system} are there.")
    if made.kept:
        tell(f"Left as you edited them: {', '.join(made.kept)}.")
    clusters = named_some(made.clusters) if made.clusters else "none yet"
    tell(f"Clusters, the folders of {root}: {clusters}. The default branch: {made.branch}.")
    tell(NEXT[made.system])
