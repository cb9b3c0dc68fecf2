"""Runs `reconciler` as `python -m reconciler`."""

from reconciler.cli.main import run

run()
