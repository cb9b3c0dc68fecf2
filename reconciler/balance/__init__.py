"""The wing of measured load: samples -> loads -> who carries what, on Spark.

    cli        the verbs `collect`, `loads` and `balance`: arguments in, exit code out
    workflow   one file a verb: read, compute, write
    render     the balance report as text, Markdown, JSON and a page
    spark      one session, and one module a transformation: sources -> normalise -> load, or -> buckets -> figures
    policies   a plan's policies, asked in Spark SQL in a closed room; the verb `plan` hands this to the house
    files      samples, Arrow tables and result folders on disk
    model      the balance report, and what was wrong with samples

The house below never imports it. Spark is loaded when a verb needs it, never by `plan` without policies.
"""
