"""One file a verb: arguments in, exit code out. Only here are exit codes, colour and the terminal known.

A verb's module is loaded when the verb runs, and loads what it needs then: `--help` and a wrong flag stay quick.
"""
