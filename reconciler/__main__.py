"""`python -m reconciler` is `reconciler`."""

from reconciler.cli.main import run

run()
