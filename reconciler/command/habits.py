"""Answers habits: names the verb or option here for what users of other tools type.

Asked only where the command line was refused, so a row never changes what a valid command means.
"""

from collections.abc import Iterator, Mapping, Sequence

import click

_ABSENT = "To delete a topic, declare it with state: absent; reconciler plan shows what is lost."
_APPLY = "To run a saved plan: reconciler apply PLAN."
_CLUSTER = "To name a cluster: --cluster NAME."
_COLOR = "To have no colour: --color never."
_DECLARE = "Topics are changed in their YAML files; reconciler plan then shows what that means."
_DESCRIBE = "To see one topic: reconciler topics describe TOPIC."
_DOCTOR = "To see what is wrong with a cluster: reconciler doctor."
_EXPORT = "To write the observed state: reconciler snapshot --out FILE."
_FILES = "Files are read from the folder of the desired state: -C DIR, by default desired-state."
_GROUP = "To see one group: reconciler groups describe GROUP."
_GROUPS = "To list consumer groups: reconciler groups list."
_IMPORT = "To write a cluster as it is as desired state: reconciler import."
_LIST = "To list topics: reconciler topics list."
_ONLY = "To plan some topics only: reconciler plan --only PATTERN."
_PLAN = "To see what would change: reconciler plan."
_RESET = "To move committed offsets: reconciler groups reset-offsets GROUP."
_ROLLBACK = "To take back what a run did: reconciler cancel --rollback."
_SERVER = "To name brokers: --bootstrap-server HOST:PORT."
_STATUS = "To see where a run stands: reconciler status."
_VALIDATE = "To check the files alone: reconciler validate."
_VARIABLES = "There are no variables but ${env:NAME} and ${file:PATH} in client properties; or give --client FILE."
_YES = "To be asked nothing: --yes."

VERBS: Mapping[str, str] = {
    # Terraform
    "destroy": _ABSENT,
    "fmt": f"YAML stands as you wrote it. {_VALIDATE}",
    "force-unlock": "The lock ends with its holder; reconciler status names it, reconciler cancel stops its run.",
    "output": "To read a plan by program: reconciler show PLAN -o json.",
    "refresh": f"Each plan observes the cluster anew. {_PLAN}",
    "state": "There is no state file: the cluster is observed. To list topics: reconciler topics list.",
    "taint": f"Nothing is made anew; a broker that must be emptied is declared with state: draining. {_PLAN}",
    "version": "To see the version: reconciler --version.",
    "workspace": f"Each folder of the root is a cluster. {_CLUSTER}",
    # kubectl
    "cluster-info": _DOCTOR,
    "config": "Client properties stand in the Cluster document, or in a file: --client FILE.",
    "cordon": f"Declare the broker with state: cordoned. {_PLAN}",
    "create": _DECLARE,
    "delete": _ABSENT,
    "delete group": "To delete groups: reconciler groups delete GROUP.",
    "describe": _DESCRIBE,
    "describe broker": _STATUS,
    "describe group": _GROUP,
    "drain": "To see what that costs: reconciler plan --what-if drain=ID; to do it, declare state: draining.",
    "edit": _DECLARE,
    "get": _LIST,
    "get broker": f"{_STATUS} It tells which brokers are safe to stop.",
    "get group": _GROUPS,
    "help": "For the help of a verb: reconciler VERB --help.",
    "logs": f"Each run writes its journal to runs/CLUSTER/PLAN-ID.jsonl. {_STATUS}",
    "patch": _DECLARE,
    "replace": _DECLARE,
    "rollout": f"{_STATUS} {_ROLLBACK}",
    "scale": _DECLARE,
    "top": "To see who carries what: reconciler balance.",
    # Kafka's own tools
    "alter": _DECLARE,
    "elect": "Leaders are elected by plans where elections: preferred stands. To see them: reconciler plan.",
    "execute": _APPLY,
    "generate": "To make a plan: reconciler plan --out FILE.",
    "lag": "To see how far groups are behind: reconciler groups lag.",
    "reassign": _PLAN,
    "reset-offsets": _RESET,
    "verify": f"{_STATUS} To check a plan's proof: reconciler show PLAN --prove.",
    # topicctl, Jikkou, JulieOps
    "bootstrap": _IMPORT,
    "check": f"{_VALIDATE} {_DOCTOR}",
    "health": _DOCTOR,
    "prepare": _PLAN,
    "rebalance": f"A plan balances what the Cluster document asks for under balance. {_PLAN}",
    "reconcile": f"{_PLAN} {_APPLY}",
    "tail": f"Records are not read. {_DESCRIBE}",
    "update": _DECLARE,
    # git and others
    "abort": "To stop a run: reconciler cancel.",
    "adopt": _IMPORT,
    "backup": _EXPORT,
    "completion": "reconciler --help says which line completes verbs and options in your shell.",
    "deploy": f"{_PLAN} {_APPLY}",
    "dump": _EXPORT,
    "export": f"{_EXPORT} To write it as YAML: reconciler import.",
    "lint": _VALIDATE,
    "list": _LIST,
    "log": f"Each run writes its journal to runs/CLUSTER/PLAN-ID.jsonl. {_STATUS}",
    "ls": _LIST,
    "pause": "To stop a run, press Ctrl-C or: reconciler cancel; reconciler apply PLAN then goes on.",
    "preview": _PLAN,
    "resume": "To go on with a run: reconciler apply PLAN, again.",
    "revert": _ROLLBACK,
    "rm": _ABSENT,
    "rollback": _ROLLBACK,
    "stop": "To stop a run: reconciler cancel.",
    "sync": f"{_PLAN} {_APPLY}",
    "test": f"{_VALIDATE} {_PLAN}",
    "undo": _ROLLBACK,
    "up": f"{_PLAN} {_APPLY}",
    # below a verb
    "groups get": _GROUPS,
    "groups reset": _RESET,
    "topics alter": _DECLARE,
    "topics create": _DECLARE,
    "topics delete": _ABSENT,
    "topics get": _LIST,
}
"""An unknown verb, with the word behind it where that decides (without its plural), and what is said to it."""

OPTIONS: Mapping[str, str] = {
    # Terraform
    "-auto-approve": _YES,
    "-chdir": "To read the desired state elsewhere: -C DIR.",
    "-destroy": _ABSENT,
    "-detailed-exitcode": "It is written with two dashes: --detailed-exitcode.",
    "-generate-config-out": f"{_IMPORT} With --dry-run it shows what it would write.",
    "-input": _YES,
    "-json": "To have JSON: -o json.",
    "-no-color": _COLOR,
    "-out": "To save the plan: --out FILE, with two dashes (-o is the form of the output).",
    "-parallelism": "How many copies are in flight is declared: moves.perBroker in the Cluster document.",
    "-refresh": f"Each plan observes the cluster anew; --state FILE reads a snapshot instead. {_PLAN}",
    "-replace": f"Nothing is made anew. {_ONLY}",
    "-state": "It is written with two dashes: --state FILE, a snapshot of reconciler snapshot.",
    "-target": _ONLY,
    "-var": _VARIABLES,
    "-var-file": _VARIABLES,
    # kubectl
    "-A": "To plan every cluster: --cluster '*'.",
    "--all-namespaces": "To plan every cluster: --cluster '*'.",
    "--context": _CLUSTER,
    "--dry-run": "plan changes nothing; to check a saved plan without running it: reconciler apply PLAN --dry-run.",
    "apply -f": f"{_APPLY} To make one of the YAML files: reconciler plan --out FILE.",
    "-f": _FILES,
    "--filename": _FILES,
    "--force": "Nothing is forced: a limit is raised in the Cluster document, under limits.",
    "--kubeconfig": "Client properties are read from a file: --client FILE.",
    "-l": _ONLY,
    "--namespace": _CLUSTER,
    "-n": _CLUSTER,
    "--selector": _ONLY,
    "-w": "To watch a run: reconciler status --watch.",
    "-y": _YES,
    # Kafka's own tools
    "--add-config": _DECLARE,
    "--alter": _DECLARE,
    "--bootstrap-servers": _SERVER,
    "--broker-list": f"{_SERVER} Which brokers a topic may use is declared: placement.brokers.",
    "--cancel": "To stop a run: reconciler cancel.",
    "--command-config": "Client properties are read from a file: --client FILE.",
    "--create": _DECLARE,
    "--delete": _ABSENT,
    "groups --delete": "To delete groups: reconciler groups delete GROUP.",
    "--delete-config": "To remove an override, give the key the value null in the topic's config. To see it: plan.",
    "--describe": _DESCRIBE,
    "groups --describe": _GROUP,
    "--election-type": "Preferred leaders are elected by plans: elections: preferred in the Cluster document.",
    "--execute": _APPLY,
    "--generate": "To make a plan: reconciler plan --out FILE.",
    "--group": "To see one group: reconciler groups describe GROUP.",
    "--list": _LIST,
    "groups --list": _GROUPS,
    "--partitions": _DECLARE,
    "--reassignment-json-file": f"{_APPLY} To write such a file: reconciler show PLAN -o kafka-json --out DIR.",
    "--replication-factor": _DECLARE,
    "--reset-offsets": _RESET,
    "--throttle": "The rate is declared: moves.throttle. To change it while apply runs: reconciler throttle PLAN RATE.",
    "--topic": f"{_DESCRIBE} {_ONLY}",
    "--topics-to-move-json-file": _ONLY,
    "--under-replicated-partitions": _DOCTOR,
    "--verify": _STATUS,
    "--zookeeper": f"Kafka is asked itself, never ZooKeeper. {_SERVER}",
    # topicctl, Jikkou, JulieOps
    "--allow-delete": "Deletion is allowed in the Cluster document: topics.delete: allow.",
    "--broker-addr": _SERVER,
    "--brokers": _SERVER,
    "--cluster-config": f"{_CLUSTER} Its Cluster document is cluster.yaml of that folder.",
    "--files": _FILES,
    "--skip-confirm": _YES,
    "--topology": _FILES,
    "--zk-addr": f"Kafka is asked itself, never ZooKeeper. {_SERVER}",
}
"""An option that its verb has not, with the verb before it where that decides, and what is said to it. Those with one
dash and a word are answered with two dashes as well."""
_NO_PLAN = "Make and save one first: reconciler plan --out plan.json."
_SHORT = 2
"""How many characters a one-letter option has."""


def spelled(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with `version` as --version and `help VERB` as VERB --help."""
    match list(arguments):
        case ["version"]:
            return ["--version"]
        case ["help", *words]:
            return [*words, "--help"]
        case given:
            return given


def answer_to_verb(path: str, words: Sequence[str]) -> str | None:
    """Return what is said to an unknown verb, the first of the words, below that path of verbs; None for no habit."""
    verb, *more = (word.lower() for word in words)
    keys = [f"{path} {verb}"] if path else []
    if more:
        keys.append(f"{verb} {more[0].removesuffix('s')}")
    return _first(VERBS, [*keys, verb])


def answer(error: click.UsageError, arguments: Sequence[str]) -> str | None:
    """Return what is said to a refused command line, besides what is wrong; None where no habit is known."""
    path = error.ctx.command_path.partition(" ")[2] if error.ctx else ""
    for typed in _typed(error, arguments):
        name = f"-{typed.lstrip('-')}" if typed.startswith("--") else typed
        found = _first(OPTIONS, [f"{path.partition(' ')[0]} {typed}", typed, name if len(name) > _SHORT else typed])
        if found:
            return f"No such option {typed!r}. {found}"
    return _about_arguments(error)


def _typed(error: click.UsageError, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the options that were meant: words behind one dash, which are read as letters, then the one refused."""
    for each in arguments:
        if each == "--":
            break
        if each.startswith("-") and not each.startswith("--"):
            name = each.partition("=")[0]
            if name in OPTIONS and len(name) > _SHORT:
                yield name
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        yield error.option_name


def _about_arguments(error: click.UsageError) -> str | None:
    """Return what to give in place of an argument that is missing, or that no verb takes."""
    message = error.format_message()
    if isinstance(error, click.MissingParameter) and error.param is not None and error.param.metavar == "PLAN":
        return f"{message} {_NO_PLAN}"
    has_arguments = error.ctx is None or any(isinstance(each, click.Argument) for each in error.ctx.command.params)
    return f"{message}. {_CLUSTER}" if message.startswith("Got unexpected extra") and not has_arguments else None


def _first(table: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((table[key] for key in keys if key in table), None)
