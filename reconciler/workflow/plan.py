"""Makes the plan that brings the observed state to the desired one; nothing in the cluster is changed.

What a plan is refused for comes with the smallest changes that would make it fit, and Kafka is asked beforehand what it
says to topic changes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare, defaults_taken
from reconciler.diff.log_dirs import dirs_of_brokers
from reconciler.diff.managed import is_ignored, managed_topics
from reconciler.diff.min_isr import min_isr_warnings
from reconciler.diff.quotas import with_quotas
from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.files.policies import read_policies
from reconciler.model.budget import Budget, CurveReport, WindowsNeeded
from reconciler.model.change import Changes, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.codec import MAX_INTEGER
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import Desired, Off
from reconciler.model.disk_space import NO_SPACE, Space
from reconciler.model.gates import LEAST_COVERAGE, UNTOLD, Gate, GateFailed, Seen, failures
from reconciler.model.loads import Loads, Statistic
from reconciler.model.plan import MirrorSource, Plan, Source
from reconciler.model.problem import (
    MOVED_BYTES,
    TOO_LARGE,
    ClusterUnavailable,
    Edit,
    InvalidInput,
    MissingRight,
    NotOffered,
    PlacementInfeasible,
    Policy,
    Problem,
    Remedy,
    Severity,
    WouldBeRefused,
)
from reconciler.model.words import written_bytes
from reconciler.workflow.diff import with_readers
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.mirrors import Mirrored, growth_of_mirrors, with_mirrors
from reconciler.workflow.own_proof import with_own_proof
from reconciler.workflow.sources import client_cautions, cluster_admin, desired_state, observed_state, source_commit

if TYPE_CHECKING:
    from reconciler.apply.refusals import Refusal
    from reconciler.planner.log_dirs.place import DirsPlaced
    from reconciler.planner.place import Placed
    from reconciler.planner.remedies import Effort, States
    from reconciler.staging.stages import Staging

MOST_SPACES = 4
"""So often a placement is looked for with more room on disks, at the most."""
Judge: TypeAlias = Callable[[Plan, Desired, Cluster, str | None], Plan]
"""Returns a plan with a violation for each row that a policy returns; the text names the folder of measured loads."""
OpenJudge: TypeAlias = Callable[[Sequence[Policy]], Judge]
"""Returns what asks these policies; raises ReconcilerError where there is nothing to ask them with."""
UNASKED = "KR865"
CORRECTIONS = 5
"""How often a plan is made again because it takes longer than its budget of time; the last one mends rules alone."""


def no_judge(policies: Sequence[Policy]) -> Judge:
    """Raise TypeError: policies hold, and the caller brought nothing to ask them with. None is ever left out."""
    raise TypeError(f"{policies[0].at.file} is a policy: say with open_judge what asks it")


Growth: TypeAlias = Callable[[Cluster, tuple[TopicChange, ...]], tuple[Problem, ...]]
"""Returns what growing topics does to the groups that read them: the wing of groups has it, its verb hands it in."""


def no_growth(_observed: Cluster, _changes: tuple[TopicChange, ...]) -> tuple[Problem, ...]:
    """Return nothing: for plans whose warnings nobody reads."""
    return ()


def _no_windows(_fewer: int | None) -> None:
    """Return nothing: for plans of which nobody asks when they run."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, how much was looked at for it, and how many policies were asked about it.

    `topics` and `partitions` are those that the desired state speaks of, `undeclared` the topics of which it says
    nothing, without ignored ones; all of them as far as `--only` goes.
    """

    plan: Plan
    topics: int
    partitions: int
    policies: int = 0
    undeclared: int = 0
    windows: Callable[[int | None], WindowsNeeded | None] = _no_windows
    """How many windows it needs, and the throttle for so many; None: the throttle for one less."""


_ADVICE = "measure longer, look at what the report of loads found, or say with --fail-on what is enough"


@dataclass(frozen=True, slots=True)
class LoadsAt:
    """The folder that measured loads are read from, and which figure of a rate counts."""

    folder: str
    statistic: Statistic = Statistic.PEAK
    gates: tuple[Gate, ...] = ()
    """What the loads must be worth; empty: anything is enough."""
    now: datetime | None = None
    """The time at which the age of loads is asked; needed where there are gates."""
    tell: Callable[[Problem], None] | None = None
    """Is told of loads that do not tell their coverage, where nobody wrote a gate for it."""

    def read(self, inputs: Inputs) -> Loads:
        """Return the loads of the cluster that is meant; raises GateFailed where they are worth less than is asked."""
        from reconciler.files.loads import read_loads, seen_of_loads

        cluster = cluster_name(inputs)
        loads = read_loads(self.folder, cluster, self.statistic)
        if self.gates and self.now is not None:
            self._hold(seen_of_loads(self.folder, cluster, self.now))
        return loads

    def _hold(self, seen: Seen) -> None:
        gates = self.gates
        if seen.coverage is None and LEAST_COVERAGE in gates:
            gates = tuple(gate for gate in gates if gate != LEAST_COVERAGE)
            if self.tell is not None:
                message = (
                    f"--loads {self.folder} does not tell the coverage of {seen.name}: nobody knows what is missing"
                )
                self.tell(Problem(UNTOLD, message, severity=Severity.WARNING))
        problems = tuple(failures(gates, seen, but=f"no plan is made by --loads {self.folder}", advice=_ADVICE))
        if problems:
            raise GateFailed(problems)


@dataclass(frozen=True, slots=True)
class Planner:
    """All that a plan depends on beside the two states."""

    commit: str | None = None
    only: tuple[str, ...] = ()
    warnings: tuple[Problem, ...] = ()
    loads: Loads | None = None
    growth: Growth = no_growth
    budget: Budget | None = None
    mirrors: tuple[MirrorSource, ...] = ()

    def told(self, growth: Growth, warnings: Sequence[Problem], inputs: Inputs, mirrored: Mirrored) -> "Planner":
        """Return the planner that tells these warnings, what growth does to groups, and which cluster goes first."""
        of_mirrors = growth_of_mirrors(inputs, mirrored)

        def both(observed: Cluster, changes: tuple[TopicChange, ...]) -> tuple[Problem, ...]:
            return (*of_mirrors(observed, changes), *growth(observed, changes))

        return replace(self, growth=both, warnings=tuple(warnings), mirrors=mirrored.sources)

    def plan(self, desired: Desired, observed: Cluster) -> Plan:
        """Return the plan that brings the observed state to the desired one; a function of all that is given alone."""
        plan = self._within(self.budget, desired, observed)
        seconds = self.budget.seconds if self.budget is not None else None
        for left in reversed(range(CORRECTIONS)):
            needed, told = plan.summary.estimated_seconds, plan.budgeted
            if seconds is None or needed <= seconds or told is None or plan.proof.value <= told.mended_bytes:
                break
            # The bytes were chosen by the busiest broker alone; stages and slots take some time beside them.
            most = plan.proof.value * seconds * 99 // (100 * needed) if left else 0
            plan = self._within(Budget(bytes=most), desired, observed)
        return plan

    def _within(self, budget: Budget | None, desired: Desired, observed: Cluster) -> Plan:
        """Return the plan within that budget."""
        from reconciler.files.plan_file import with_id
        from reconciler.model.coordinator import coordinator_warnings
        from reconciler.staging.assembly import assemble
        from reconciler.staging.problems import throttle_violations, throttle_warnings

        loads, policy = self.loads, desired.cluster.moves
        names = _matching(desired, observed, self.only) if self.only else None
        rules = topic_rules(desired, observed)
        changes = _of_topics(compare(desired, observed, rules), names)
        placed, inside, staged = self._staged(desired, observed, rules, changes, names, budget=budget)
        chosen = {name: rule for name, rule in rules.items() if names is None or name in names}
        plan = assemble(
            staged,
            observed=observed,
            desired=desired,
            source=Source(
                desired.digest, observed.observed_at, self.commit, self.only, budget=self.budget, mirrors=self.mirrors
            ),
            proof=placed.proof,
            balance_before=placed.balance_before,
            balance_after=placed.balance_after,
            least_dir_bytes=inside.least,
            warnings=(
                *changes.warnings,
                *placed.warnings,
                *inside.warnings,
                *defaults_taken(placed.topic_changes, desired.topics),
                *min_isr_warnings(chosen, observed, placed.topic_changes, placed.moves.topics_moved),
                *self.growth(observed, placed.topic_changes),
                *coordinator_warnings(staged.stages, observed),
                *self.warnings,
                *(throttle_warnings(staged.stages, policy, loads) if loads is not None else ()),
            ),
            violations=(
                *(each.problem for each in changes.spared),
                *placed.violations,
                *(throttle_violations(staged.stages, observed, policy, loads) if loads is not None else ()),
            ),
        )
        _refuse_too_many_bytes(plan)
        plan = replace(with_quotas(plan, desired, observed), budgeted=placed.budgeted)
        return with_id(plan if plan.is_empty else replace(plan, grounds=placed.grounds))

    def _staged(
        self,
        desired: Desired,
        observed: Cluster,
        rules: Mapping[str, TopicRules],
        changes: Changes,
        names: Collection[str] | None,
        *,
        budget: Budget | None,
    ) -> "tuple[Placed, DirsPlaced, Staging]":
        """Return the placement and its stages: the first that no disk is too full for, else that of least excess."""
        from reconciler.planner.place import plan_placement

        relieved = None if names is None else _holding(observed, names)
        share, space, found = desired.cluster.limits.disk_use, None, list["tuple[Placed, DirsPlaced, Staging]"]()
        while len(found) <= MOST_SPACES:
            placed = plan_placement(
                desired, observed, rules, changes, names, loads=self.loads, space=space, budget=budget
            )
            if found and (placed.moves, placed.topic_changes) == (found[-1][0].moves, found[-1][0].topic_changes):
                _, inside, staged = found[-1]
            else:
                try:
                    inside, staged = self._in_dirs(
                        desired, observed, rules, changes, names=names, placed=placed, relieved=relieved
                    )
                except PlacementInfeasible:
                    # This placement leaves a draining log dir no room, so the placement before it is kept.
                    if found:
                        break
                    raise
            found.append((placed, inside, staged))
            # Disks are a search of their own, which few plans need: only where one is too full are they looked at.
            if share is None or placed.disk_excess is None or sum(staged.crowded.values()) <= placed.disk_excess:
                break
            # Where the end fits and the way to it does not, the way is looked at too, at last of all brokers.
            if space is None:
                space = Space(
                    share, inside=frozenset(_with_full_dirs(staged.crowded, desired, observed)), relieved=relieved
                )
            elif space.tight != frozenset(observed.brokers):
                new = staged.crowded.keys() - space.tight
                space = replace(space, tight=space.tight | new if new else frozenset(observed.brokers))
            elif space.inside:
                space = replace(space, inside=frozenset())
            else:
                break
        placed, inside, staged = min(found, key=lambda each: (each[2].end_excess, sum(each[2].crowded.values())))
        kept = [warning for warning in placed.warnings if warning.code != NO_SPACE]
        told = [warning for other, *_ in reversed(found) for warning in other.warnings if warning.code == NO_SPACE]
        return replace(placed, warnings=(*kept, *(told[:1] if staged.crowded else ()))), inside, staged

    def _in_dirs(
        self,
        desired: Desired,
        observed: Cluster,
        rules: Mapping[str, TopicRules],
        changes: Changes,
        *,
        names: Collection[str] | None,
        placed: "Placed",
        relieved: Collection[int] | None,
    ) -> "tuple[DirsPlaced, Staging]":
        """Return the moves inside brokers and all stages; where Kafka's choice would overfill a log dir, with ours."""
        from reconciler.planner.log_dirs.place import place_log_dirs
        from reconciler.staging.stages import stage_moves

        def attempt(crowded: Collection[int], full: Collection[int] = ()) -> "tuple[DirsPlaced, Staging]":
            inside = place_log_dirs(
                desired, observed, rules, placed.moves, deleted=changes.deleted, only=names, crowded=crowded, full=full
            )
            staged = stage_moves(
                inside.moves,
                placed.topic_changes,
                changes.elections,
                observed=observed,
                desired=desired,
                rules=rules,
                dir_moves=inside.dir_moves,
                relieved=relieved,
            )
            return inside, staged

        first = attempt(())
        crowded = [id_ for id_ in first[1].crowded if len(observed.brokers[id_].sized_dirs) > 1]
        tried = [first, attempt(crowded)] if crowded else [first]
        full = [*_with_full_dirs(crowded, desired, observed)]
        tried += [attempt(crowded, full)] if full else []
        return min(tried, key=lambda each: (each[1].end_excess, sum(each[1].crowded.values())))

    def plan_or_remedies(self, desired: Desired, observed: Cluster, *, is_thorough: bool = False) -> Plan:
        """Return the plan; one with violations carries remedies, and so does the PlacementInfeasible that is raised.

        The search makes few plans of its own, more where it is thorough, and none of a large cluster unless it is.
        """
        try:
            plan = with_own_proof(self.plan(desired, observed), desired, observed, self.loads)
            if not plan.violations:
                return plan
            refusal = None
        except PlacementInfeasible as error:
            refusal = error
        from reconciler.files.plan_file import with_id
        from reconciler.planner.remedies import (
            ORDINARY,
            THOROUGH,
            Effort,
            States,
            remedies_of_conflict,
            remedies_of_violations,
        )

        effort = THOROUGH if is_thorough else ORDINARY
        balance, states = desired.cluster.balance, States(desired, observed)
        measured = (balance.disk, balance.network_in, balance.network_out, balance.leader_in)
        if desired.cluster.limits.rates or not all(isinstance(each, Off) for each in measured):
            # A balance of loads takes many times as long to plan.
            effort = Effort(effort.plans // 10, effort.partitions // 20)
        if refusal is None:
            remedies = remedies_of_violations(states, plan, self.plan, effort)
            return with_id(replace(plan, remedies=(*remedies, *self._with_budget(plan, states, effort))))
        names = _matching(desired, observed, self.only) if self.only else None
        raise PlacementInfeasible(refusal.problems, remedies_of_conflict(states, names, self.plan, effort)) from None

    def _with_budget(self, plan: Plan, states: "States", effort: "Effort") -> Iterator[Remedy]:
        """Yield that the plan fits with the limit of bytes as its budget, where it is over that alone and so fits."""
        desired, observed = states
        limit = desired.cluster.limits.moved_bytes
        partitions = sum(len(topic.partitions) for topic in observed.topics.values())
        is_worth_it = self.budget is None and effort.partitions >= partitions and effort.plans > 0
        if limit is None or not is_worth_it or not all(problem.code == MOVED_BYTES for problem in plan.violations):
            return
        try:
            within = replace(self, budget=Budget(bytes=limit)).plan(desired, observed)
        except InvalidInput:
            return
        if not within.violations:
            yield Remedy((Edit(f"the plan is made with --budget {written_bytes(limit)}"),))


def _refuse_too_many_bytes(plan: Plan) -> None:
    """Raise InvalidInput for a plan with a figure that its file cannot hold."""
    held = (share.bytes or 0 for share in (*plan.balance_before.values(), *plan.balance_after.values()))
    disks = (*plan.disk_peak.values(), *plan.disk_capacity.values())
    largest = max(plan.summary.bytes, plan.summary.dir_bytes, *held, *disks)
    if largest > MAX_INTEGER:
        message = f"{largest} bytes in one sum are more than a plan file can hold ({MAX_INTEGER})"
        raise InvalidInput([Problem(TOO_LARGE, f"{message}: check the unit of the sizes in the snapshot")])


def make_curve(inputs: Inputs, *, only: Sequence[str] = (), progress: ProgressHook | None = None) -> CurveReport:
    """Return what each budget buys; raises as `make_plan` does, and InvalidInput for a balance of measured loads."""
    from reconciler.planner.place import plan_curve

    desired = desired_state(inputs)
    observed = observed_state(inputs, desired, progress)
    desired = with_mirrors(inputs, desired, observed, progress).desired
    names = _matching(desired, observed, only) if only else None
    rules = topic_rules(desired, observed)
    return plan_curve(desired, observed, rules, _of_topics(compare(desired, observed, rules), names), names)


def planner_of(
    inputs: Inputs, only: Sequence[str] = (), loads: LoadsAt | None = None, budget: Budget | None = None
) -> Planner:
    """Return how the caller wants plans to be made."""
    read = loads.read(inputs) if loads is not None else None
    return Planner(source_commit(Path(inputs.root)), tuple(only), loads=read, budget=budget)


def make_plan(
    inputs: Inputs,
    *,
    only: Sequence[str] = (),
    loads: LoadsAt | None = None,
    progress: ProgressHook | None = None,
    open_judge: OpenJudge = no_judge,
    growth: Growth = no_growth,
    budget: Budget | None = None,
) -> Planned:
    """Return the plan with its id; with `only`, of topics whose names match one of these shell patterns.

    Raises InvalidInput for wrong files, another cluster or topic changes that Kafka says it would refuse,
    PlacementInfeasible where rules are in conflict; where the plan is refused, it or the error carries what would make
    it fit; a policy that it breaks is beyond that. `open_judge` is called only where policies hold.
    """
    desired = desired_state(inputs)
    policies = read_policies(Path(inputs.root), cluster_name(inputs))
    judge = open_judge(policies) if policies else None
    observed = observed_state(inputs, desired, progress)
    mirrored = with_mirrors(inputs, desired, observed, progress)
    desired = mirrored.desired
    observed, unread = with_readers(inputs, desired, observed)
    warnings = (*unread, *client_cautions(inputs, desired))
    planner = planner_of(inputs, only, loads, budget).told(growth, warnings, inputs, mirrored)
    plan = planner.plan_or_remedies(desired, observed)
    plan = _refuse_what_kafka_would(plan, inputs, desired, observed)
    if judge is not None:
        plan = judge(plan, desired, observed, loads.folder if loads is not None else None)
    return looked_at(plan, desired, observed, only, policies=len(policies))


def looked_at(
    plan: Plan, desired: Desired, observed: Cluster, only: Sequence[str] = (), *, policies: int = 0
) -> Planned:
    """Return the plan with what it was made from: topics that the desired state speaks of, as far as `only` goes."""
    managed = managed_topics(desired, observed)
    named = [name for name in observed.topics if not only or any(fnmatchcase(name, pattern) for pattern in only)]
    matched = [observed.topics[name] for name in named if name in managed]
    partitions = sum(len(topic.partitions) for topic in matched)
    undeclared = sum(name not in managed and not is_ignored(desired, name) for name in named)
    needed = partial(_windows, plan, desired, observed)
    return Planned(plan, len(matched), partitions, policies, undeclared, needed)


def _windows(plan: Plan, desired: Desired, observed: Cluster, fewer: int | None) -> WindowsNeeded | None:
    if not desired.cluster.windows:
        return None
    from reconciler.staging.windows import windows_needed

    return windows_needed(plan, desired, observed, fewer)


def plan_of(desired: Desired, observed: Cluster) -> Plan:
    """Return the plan of these states, where nothing else is known."""
    return Planner().plan(desired, observed)


def _matching(desired: Desired, observed: Cluster, patterns: Sequence[str]) -> frozenset[str]:
    known = {*observed.topics, *desired.topics}
    problems = [
        Problem("KR305", f"--only {pattern}: no topic, observed or declared, has such a name; check the pattern")
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in known)
    ]
    if problems:
        raise InvalidInput(problems)
    return frozenset(name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns))


def _with_full_dirs(broker_ids: Collection[int], desired: Desired, observed: Cluster) -> Iterator[int]:
    """Yield the brokers that have several open log dirs, of which one is above the limit already."""
    share = desired.cluster.limits.disk_use or 1
    for broker_id, broker in dirs_of_brokers(desired, observed, broker_ids)[0].items():
        is_full = [log_dir.used > log_dir.total * share for log_dir in broker.dirs if log_dir.is_open]
        if broker_id in broker_ids and len(is_full) > 1 and any(is_full):
            yield broker_id


def _holding(observed: Cluster, names: Collection[str]) -> frozenset[int]:
    """Return the brokers that hold a replica of these topics: a plan for them alone relieves no other disk."""
    partitions = (one for name in names if name in observed.topics for one in observed.topics[name].partitions)
    return frozenset(broker_id for one in partitions for broker_id in one.replicas)


def _of_topics(changes: Changes, names: Collection[str] | None) -> Changes:
    if names is None:
        return changes
    return replace(
        changes,
        topic_changes=tuple(change for change in changes.topic_changes if change.topic in names),
        broken_rules=tuple(rule for rule in changes.broken_rules if rule.topic_partition.topic in names),
        elections=tuple(each for each in changes.elections if each.topic_partition.topic in names),
        spared=tuple(each for each in changes.spared if each.topic in names),
        leaderless=tuple(each for each in changes.leaderless if each.topic_partition.topic in names),
    )


def _refuse_what_kafka_would(plan: Plan, inputs: Inputs, desired: Desired, observed: Cluster) -> Plan:
    """Return the plan, with a warning where Kafka could not be asked; raises InvalidInput for what it would refuse.

    What brokers do not take at all, as those of some services, is a violation: the plan is shown, and never applied.
    """
    if plan.is_empty or (inputs.state and not plan.topic_changes):
        return plan
    from reconciler.apply.refusals import list_changes, not_asked, requests_lacking, said_to

    unasked: Sequence[str] = ()
    lacking: list[str] = []
    try:
        if not inputs.state:
            with cluster_admin(inputs, desired) as admin:
                lacking = [*requests_lacking(plan, admin)]
                # A run asks about all throttle lists. A user who only plans may lack the right to ask.
                lists = list_changes(plan.stages, plan.topic_changes)
                topics = observed.topics
                blocked = (change for change in lists if UNREADABLE in topics[change.topic].configs.values())
                said = said_to(plan, [*plan.topic_changes, *blocked], admin)
            if said.refused:
                raise InvalidInput(_problem(one, desired, observed) for one in said.refused)
            unasked = said.unasked
        else:
            unasked = [not_asked(plan.topic_changes, "the state is a snapshot")]
    except (ClusterUnavailable, MissingRight) as error:
        unasked = [not_asked(plan.topic_changes, str(error))] if plan.topic_changes else ()
    if not unasked and not lacking:
        return plan
    from reconciler.files.plan_file import with_id

    told = [Problem(UNASKED, f"{each}; apply asks before its first change", None, Severity.WARNING) for each in unasked]
    violations = [Problem(NotOffered.code, each) for each in lacking]
    return with_id(replace(plan, warnings=(*plan.warnings, *told), violations=(*plan.violations, *violations)))


def _problem(refusal: "Refusal", desired: Desired, observed: Cluster) -> Problem:
    """Return the refusal where the first config that Kafka names is written, else where the change comes from."""
    change = refusal.change
    declared = desired.topics.get(change.topic)
    if declared is None and change.topic in observed.topics:
        declared = topic_rules(desired, observed)[change.topic].declared
    places = [declared.where(f"config.{key}") for key in refusal.keys] if declared is not None else []
    text = str(refusal) if refusal.removed_key else f"{refusal}; write what this cluster takes"
    of_topic = declared.where("") if declared is not None else None
    return Problem(WouldBeRefused.code, text, next(iter(places), None) or change.at or of_topic)
