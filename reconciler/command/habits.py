"""Maps what users of Terraform, kubectl and Kafka's own tools type to the verb or option here.

It is asked only about a refused command line, so a row never changes what a valid command means.
"""

from collections.abc import Mapping, Sequence

import click

HABITS: Mapping[str, str] = {
    # Terraform
    "destroy rm -destroy": "To delete a topic, declare it with state: absent; reconciler plan shows what is lost.",
    "fmt lint check": "To check the files alone: reconciler validate.",
    "force-unlock": "The lock ends with its holder; reconciler status names it, reconciler cancel stops its run.",
    "output": "To read a plan by program: reconciler show PLAN -o json.",
    "refresh -refresh": "Each plan observes the cluster anew; --state FILE reads a snapshot instead.",
    "state": "There is no state file: the cluster is observed. To list topics: reconciler topics list.",
    "version": "To see the version: reconciler --version.",
    "workspace --context --namespace -n": "To name a cluster: --cluster NAME.",
    "-auto-approve --auto-approve -input -y": "To be asked nothing: --yes.",
    "-json": "To have JSON: -o json.",
    "-no-color": "To have no colour: --color never.",
    "-out": "To save the plan: --out FILE, with two dashes (-o is the form of the output).",
    "-target --selector -l": "To plan some topics only: reconciler plan --only PATTERN.",
    "-var -var-file": "There are no variables but ${env:NAME} and ${file:PATH} in client properties.",
    # kubectl
    "cluster-info --under-replicated-partitions": "To see what is wrong with a cluster: reconciler doctor.",
    "cordon": "Declare the broker with state: cordoned. To see what would change: reconciler plan.",
    "create edit patch scale alter --create --alter --add-config --delete-config": (
        "Topics are changed in their YAML files; reconciler plan then shows what that means."
    ),
    "delete --delete": "To delete a topic, declare it with state: absent; a group: reconciler groups delete GROUP.",
    "describe --describe": "To see one: reconciler topics describe TOPIC, or reconciler groups describe GROUP.",
    "drain": "To see what that costs: reconciler plan --what-if drain=ID; to do it, declare state: draining.",
    "get list ls --list": "To list topics: reconciler topics list; to list consumer groups: reconciler groups list.",
    "help": "For the help of a verb: reconciler VERB --help.",
    "rollout rollback undo": "To take back what a run did: reconciler cancel --rollback.",
    "-f --filename -chdir": "Files are read from the folder of the desired state: -C DIR, by default desired-state.",
    # Kafka's own tools
    "--command-config --kubeconfig": "Client properties are read from a file: --client FILE.",
    "--election-type": "Preferred leaders are elected by plans: elections: preferred in the Cluster document.",
    "--generate --topics-to-move-json-file": "To make a plan: reconciler plan --out FILE.",
    "--reassignment-json-file": "To run a saved plan: reconciler apply PLAN; to follow it: reconciler status.",
    "reset reset-offsets --reset-offsets": "To move committed offsets: reconciler groups reset-offsets GROUP.",
    "--throttle": "Declare moves.throttle. To change it while apply runs: reconciler throttle PLAN RATE.",
    "--zookeeper --broker-list": "To name brokers: --bootstrap-server HOST:PORT.",
}


def answer_to(word: str) -> str | None:
    """Return the sentence for a verb or option of another tool; None for any other word."""
    return next((sentence for words, sentence in HABITS.items() if word in words.split()), None)


def answer_to_option(error: click.UsageError, arguments: Sequence[str]) -> str | None:
    """Return what to type instead of another tool's option, if the command line was refused for an option."""
    if not isinstance(error, click.NoSuchOption | click.BadParameter):
        return None
    names = (word.partition("=")[0] for word in arguments if word.startswith("-"))
    return next((f"No such option {name!r}. {answer_to(name)}" for name in names if answer_to(name)), None)
