"""Workflows and composite actions run as GitHub's runner would run them, on this machine, without GitHub.

    runner = WorkflowSteps(workspace, folder, event={...}, secrets={...})
    job = runner.run("plan.yml", "plan", matrix={"cluster": "demo"})
    job.result, job.summary, job.artifacts["plan-demo"]

Each `run:` is a bash of its own, as the runner starts it; `uses:` of an action in the repository is followed. Of other
people's actions four are known: a checkout (the workspace is there), a Python (this one), artifacts up and down.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from helpers.program.call import captured

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
TOKEN = re.compile(r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|!|\(|\)|[A-Za-z_][\w.-]*)")
PYTHON = {"&&": " and ", "||": " or ", "!": " not ", "==": "==", "!=": "!=", "(": "(", ")": ")"}
Context = Mapping[str, object]


def evaluated(expression: str, context: Context, functions: Mapping[str, bool]) -> object:
    """Return the value of an expression: names, strings, `== != ! && ||`, and functions without arguments."""
    python, position = [], 0
    while position < len(expression.rstrip()):
        token = TOKEN.match(expression, position)
        assert token, f"not understood: {expression[position:]!r}"
        python.append(_python(token[1], context, functions))
        position = token.end()
    return eval("".join(python).replace("()", ""), {"__builtins__": {}})  # noqa: S307 - literals and operators alone


def _python(token: str, context: Context, functions: Mapping[str, bool]) -> str:
    if token in PYTHON:
        return PYTHON[token]
    if token.startswith("'"):
        return repr(token[1:-1].replace("''", "'"))
    return repr(functions[token] if token in functions else looked_up(token, context))


def looked_up(name: str, context: Context) -> object:
    """Return the value of a dotted name, an empty text where there is none, as GitHub does."""
    value: object = context
    for part in name.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return value


def filled(text: object, context: Context, functions: Mapping[str, bool]) -> str:
    """Return the text with its expressions replaced."""

    def replaced(found: re.Match[str]) -> str:
        value = evaluated(found[1], context, functions)
        return str(value).lower() if isinstance(value, bool) else str(value)

    return EXPRESSION.sub(replaced, str(text))


@dataclass(slots=True)
class Job:
    """What a job did: `success`, `failure` or `skipped`; `log`: what its steps printed; `name`: as GitHub shows it."""

    result: str = "success"
    log: str = ""
    summary: str = ""
    steps: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class WorkflowSteps:
    """Runs jobs of the workflows in `workspace`; artifacts are folders of `artifacts`."""

    workspace: Path
    folder: Path
    event: Mapping[str, object]
    secrets: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()

    @property
    def artifacts(self) -> Path:
        """Where uploaded artifacts go."""
        return self.folder / "artifacts"

    def run(
        self,
        workflow: str,
        job: str,
        matrix: Mapping[str, str],
        needs: Mapping[str, Job | str] | None = None,
        inputs: Mapping[str, str] | None = None,
    ) -> Job:
        """Run one job with one row of its matrix, on a fresh runner; `needs` are the jobs before it, or their results.

        `inputs`: what a called workflow is called with.
        """
        before = {name: one if isinstance(one, Job) else Job(one) for name, one in (needs or {}).items()}
        text = (self.workspace / ".github" / "workflows" / workflow).read_text()
        declared = yaml.safe_load(text)["jobs"][job]
        temp = self.folder / "temp"
        temp.mkdir(parents=True, exist_ok=True)
        for name in (
            "plan",
            "planned",
            "plans",
            "results",
            "runs",
            "snapshot",
            "states",
        ):  # a runner has a new folder for each job
            shutil.rmtree(temp / name, ignore_errors=True)
        context = {
            "matrix": matrix,
            "secrets": self.secrets,
            "inputs": inputs or {},
            "runner": {"temp": str(temp)},
            "needs": {name: {"result": one.result, "outputs": one.outputs} for name, one in before.items()},
            **self.event,
        }
        run = _Run(self, temp, Job())
        run.job.name = filled(declared.get("name", job), context, run.functions)
        asked = str(declared.get("if", "success()"))
        asks = any(f"{name}()" in asked for name in run.functions if name != "success")
        is_after_all = all(one.result == "success" for one in before.values())
        if not (asks or is_after_all) or not run.is_wanted(asked, context):
            run.job.result = "skipped"
            return run.job
        ended = run.steps(declared["steps"], context, self.workspace)
        outputs = _mapping(declared.get("outputs"))
        run.job.outputs = {name: filled(value, ended, run.functions) for name, value in outputs.items()}
        return run.job


@dataclass(slots=True)
class _Run:
    """One job that is on."""

    runner: WorkflowSteps
    temp: Path
    job: Job

    @property
    def functions(self) -> Mapping[str, bool]:
        failed = self.job.result == "failure"
        return {"success": not failed, "failure": failed, "cancelled": False, "always": True}

    def is_wanted(self, condition: str, context: Context) -> bool:
        inner = EXPRESSION.fullmatch(condition)
        expression = inner[1] if inner else condition
        asks = any(f"{name}()" in expression for name in self.functions)
        return (asks or self.functions["success"]) and bool(evaluated(expression, context, self.functions))

    def steps(self, steps: list[dict[str, object]], context: Context, action: Path) -> Context:
        """Run the steps, and return the context with their outputs."""
        context = {**context, "steps": {}}
        for step in steps:
            if self.is_wanted(str(step.get("if", "success()")), context):
                outputs = self._step(step, context, action)
                context["steps"] = {**_mapping(context["steps"]), str(step.get("id", "")): {"outputs": outputs}}
        return context

    def _step(self, step: Mapping[str, object], context: Context, action: Path) -> Mapping[str, object]:
        env = {name: filled(value, context, self.functions) for name, value in _mapping(step.get("env")).items()}
        given = {name: filled(value, context, self.functions) for name, value in _mapping(step.get("with")).items()}
        if "run" in step:
            self.job.steps.append(str(step.get("name", step["run"])))
            return self._bash(filled(step["run"], context, self.functions), env, action)
        uses = str(step["uses"])
        if uses.startswith("./"):
            return self._composite(self.runner.workspace / uses, given, {**context, "env": env}, env)
        self.job.steps.append(uses)
        KNOWN[uses.partition("@")[0]](self, given)
        return {}

    def _composite(
        self, folder: Path, given: Mapping[str, str], context: Context, env: Mapping[str, str]
    ) -> Mapping[str, object]:
        declared = yaml.safe_load((folder / "action.yml").read_text())
        known = _mapping(declared["inputs"])
        assert set(given) <= set(known), f"{folder.name} has no input {sorted(set(given) - set(known))}"
        inputs = {name: given.get(name) or _mapping(one).get("default", "") for name, one in known.items()}
        inner = _Run(self.runner, self.temp, self.job)
        steps = [{**step, "env": {**env, **_mapping(step.get("env"))}} for step in declared["runs"]["steps"]]
        ended = inner.steps(steps, {**context, "inputs": inputs}, folder)
        outputs = _mapping(declared.get("outputs"))
        return {name: filled(_mapping(one)["value"], ended, self.functions) for name, one in outputs.items()}

    def _bash(self, script: str, env: Mapping[str, str], action: Path) -> Mapping[str, object]:
        files = {name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        base = {name: value for name, value in os.environ.items() if not name.startswith(("RECONCILER_", "GITHUB_"))}
        environment = {
            **base,
            **self.runner.environment,
            "PATH": os.pathsep.join([*reversed(self.job.paths), *self.runner.programs, base["PATH"]]),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(action),
            "RUNNER_TEMP": str(self.temp),
            **{name: str(file) for name, file in files.items()},
            **env,
        }
        script_file = self.temp / "step.sh"
        script_file.write_text(script)
        command: list[str | Path] = ["bash", "--noprofile", "--norc", "-eo", "pipefail", script_file]
        done = captured(command, self.runner.workspace, environment)
        self.job.log += done.stdout + done.stderr
        self.job.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        self.job.paths += files["GITHUB_PATH"].read_text().splitlines()
        if done.returncode:
            self.job.result = "failure"
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _mapping(value: object) -> Mapping[str, object]:
    assert value is None or isinstance(value, Mapping)
    return value or {}


def _checkout(run: _Run, _: Mapping[str, str]) -> None:
    """The workspace is there, and no job leaves anything in it."""
    (run.temp / "result").unlink(missing_ok=True)


def _nothing(_: _Run, __: Mapping[str, str]) -> None:
    """Python is there."""


def _upload(run: _Run, given: Mapping[str, str]) -> None:
    found = [run.runner.workspace / path for path in given["path"].split()]
    there = [path for path in found if path.exists()]
    if not there and given.get("if-no-files-found", "warn") == "error":
        run.job.result = "failure"
        run.job.log += f"No files were found with the provided path: {given['path']}\n"
    for path in there:
        _copied(path, run.runner.artifacts / given["name"])


def _download(run: _Run, given: Mapping[str, str]) -> None:
    """Without `run-id` and `github-token` there are only the run's own artifacts; one that is named must be there."""
    assert set(given) <= {"name", "pattern", "path"}
    folder = run.runner.workspace / given["path"]
    if "name" not in given:
        for artifact in sorted(run.runner.artifacts.glob(given["pattern"])):
            _copied(artifact, folder / artifact.name)
    elif (run.runner.artifacts / given["name"]).is_dir():
        _copied(run.runner.artifacts / given["name"], folder)
    else:
        run.job.result = "failure"
        run.job.log += f"Artifact not found for name: {given['name']}\n"


def _copied(path: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
    else:
        shutil.copy(path, folder)


KNOWN: Mapping[str, Callable[[_Run, Mapping[str, str]], None]] = {
    "actions/checkout": _checkout,
    "actions/setup-python": _nothing,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
}
