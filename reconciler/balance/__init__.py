"""Measures load: samples -> loads -> who carries what, on Spark; and asks a plan's policies in Spark SQL.

    cli        the verbs `collect`, `loads` and `balance`: arguments in, exit code out
    workflow   one file a verb: read, compute, write; `sides`: clusters as they are and as plans leave them
    render     the balance report as text, Markdown, JSON and a page
    policies   a plan's policies: `asking` starts a closed room, `room` answers in it, `closed_query` refuses what a
               policy may not have; the verb `plan` hands `asking.open_judge` to the house
    spark      a session on any Spark (`session`, `connect`, `settings`, `work`, in the words of `spellings`), and one
               module a transformation, below
    files      samples, Arrow tables and result folders on disk
    model      the balance report, and what was wrong with samples

Where samples come from: `workflow.collect` asks Kafka itself, and `exporters` ask a Prometheus for the rates of topics
(`model.exported`), which are split over partitions (`model.shares`).

How samples become figures, in `spark`; both jobs begin alike:

    sources               files of every kind -> one table of samples
    prometheus            figures of exporters and recorded rules, by their names (metric_names)
    normalise             every rule marks what it finds; what is left out is counted, never dropped unseen
    growth                rates that were not measured, from the growth of offsets and sizes

`loads_job` goes on to one row for each partition, which `plan --loads` reads:

    load                  a partition's time buckets -> average, 95th percentile, maximum, peak

`balance_job` goes on to brokers, racks, log dirs, topics and clusters, before and after a plan:

    buckets, soundness    each one's sum in each time bucket, then its statistics: percentiles do not add up
    replica_load          which replica stands where: counts, sizes, what a plan moves; the levels of each carrier
    figures, skew         all figures of all levels; how evenly the brokers carry them
    forecast              the days until a disk is full: growth, which ends where retention ends it
    collected             the tables as the report's values

The house below never imports this wing. Spark is loaded when a job needs it, never by `plan` without policies.
"""
