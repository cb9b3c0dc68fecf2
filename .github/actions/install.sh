#!/usr/bin/env bash
# Installs the reconciler of the repository that this action stands in, with the extras named; steps find it on PATH.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv="$RUNNER_TEMP/reconciler"
if [ ! -x "$venv/bin/reconciler" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "$root${1:+[$1]}"
fi
echo "$venv/bin" >>"$GITHUB_PATH"
