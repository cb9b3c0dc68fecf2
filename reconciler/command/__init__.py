"""Holds what every verb shares, of house and wings: how it is declared, run and ended. The home of click.

A verb's module is loaded when the verb runs, and loads what it needs then: `--help` and a wrong flag stay quick.
"""
