"""A declarative reconciler for Kafka topics and partition assignments.

The ten-minute map. Data flows one way, and each step is a package:

    files     YAML, snapshots and saved plans: disk in, disk out
    admin     a cluster in, requests out: one port, the Kafka client and a simulated cluster behind it
    model     what all of these are made of: cluster, desired, change, move, stage, plan, run, problem
    diff      desired x observed -> changes, and the rules each partition must keep
    planner   changes -> moves: the least movement that keeps every rule and reaches the balance, with its prices
    proof     a plan and its prices -> the same lower bound, by code that shares nothing with the planner
    staging   moves -> stages that are safe one by one, and what would undo them
    simulate  state x request -> state, as Kafka's controller does it
    groups    consumer groups: assignors as Kafka's, and what a change would do to members and offsets
    apply     observe, decide, do one thing, record; cancel, status, and what a doctor looks at
    render    one plan, many views
    workflow  one file a verb: read -> compute -> write
    command   how a verb is declared, run and ended: options, streams, exit codes
    cli       one file a verb: arguments in, exit code out

A wing stands on this house, and the house never imports it; it has its own model, files, workflow, render and verbs:

    balance   samples -> loads -> who carries what, on Spark; and a plan's policies, asked in Spark SQL

`model, diff, planner, proof, staging, groups, simulate` are pure: no files, no clock, no network.
"""
