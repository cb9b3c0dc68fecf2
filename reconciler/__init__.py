"""Plans and runs changes of Kafka topics and partition assignments that are declared in files.

**The ten-minute map.** Data flows one way, and each step is a package:

    files     reads and writes what is on disk: YAML, snapshots, saved plans, journals; sends messages to webhooks
    admin     reads a cluster and sends it requests: one port, with the Kafka client and a simulated cluster behind it
    model     holds the values that all of these pass on: cluster, desired, change, move, stage, plan, run, problem
    diff      desired x observed -> changes, and the rules that each partition must keep
    planner   changes -> moves: the least movement that keeps every rule and reaches the balance, with its prices
    proof     a plan and its prices -> the same lower bound again, by code that shares nothing with the planner
    staging   moves -> stages that are safe one by one, and the plan that undoes another
    simulate  state x request -> state, as Kafka's controller does it
    apply     observe, decide, do one thing, record; cancel, status, and what doctor looks at
    render    one plan, many views
    workflow  one file a verb: read -> compute -> write
    command   what every verb shares: options, streams, exit codes
    cli       one file a verb: arguments in, exit code out

Two wings stand beside this house, each with its own model, files, workflow, render and cli:

    groups    consumer groups: the assignors as Kafka's, and what a change would do to members and offsets
    balance   samples -> loads -> who carries what, on Spark

`model, diff, planner, proof, staging, simulate` and the assignors are pure: no files, no clock, no network.
`pyproject.toml` says who may import whom, and a linter checks it. `.github/decisions/README.md` says why, by topic.

**Five files to read first**, in this order:

1. `model/plan.py`: what a plan is; all packages make it, check it, show it or run it.
2. `workflow/plan.py`: how one is made, from files and cluster to the saved file, in a straight line.
3. `planner/__init__.py`, then `planner/replicas.py`: the mathematics, and how replicas are chosen by it.
4. `staging/chain.py`: how one move becomes steps that are safe at every moment.
5. `apply/decide.py`: the next step of a run, as a function of plan, cluster, stage memory and time.

**Our own words.** Everything else is Kafka's word or the contract's: desired, observed, change, move, stage, plan, run.

    price             what one more replica on a broker costs an objective: a dual variable of the planner's flow
    level             one objective, its optimum, its prices; levels come one by one (a plan's `proof.levels`)
    table             all partitions of a cluster as columns; a partition is a value only where somebody asks for it
    row               a partition in a table; in the planner's arrays also a class of partitions under the same rules
    band              the least and the most that a broker may end with, where a balance says `{within: X}`
    ground            why a move is made, or why its broker was chosen: what `--explain` shows
    remedy            an edit of the desired state with which a refused plan would fit
    effect            what a topic change does to records and clients: destroys, irreversible, availability, clients
    step              a part of a partition's move that is carried out at once; the steps of one move are a chain
    urgency           which steps go first: repairs, then draining, rules, balance, leaders
    partition path    the ordered replicas that a partition passes in a plan, and where on it the partition stands now
    record            what a run keeps in the cluster, in offsets of the lock's group: any machine can clean up by it
    stage memory      what a run remembers of its stage from one turn to the next, and the cluster cannot tell
    leftover throttle a rate or list that a run set and could not take off, because its broker was down or the run died
    copy              a topic that a mirror wants here, of a topic of its source; declared like any other from there on
    owner             a team: whose topics are, by label or pattern, and how much it may have
    notice            one message about what differs in the clusters of a call
    finding           what doctor tells: a code, a severity, what it is about, what to do
    side              one of the states that `balance` compares: as observed, or as a plan leaves it
"""
