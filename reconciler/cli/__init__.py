"""Holds one file a verb: arguments in, exit code out; and the table of verbs. Only this package knows the wings.

A verb's module is loaded when the verb runs, and loads what it needs then: `--help` and a wrong flag stay quick.
"""
