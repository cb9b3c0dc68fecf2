#!/usr/bin/env bash
# python.sh PROGRAM ARGUMENT...: runs a program of actions/plan, and no other file of the repository.
# The job may hold a cluster's password. Python would take a json.py beside a program, or where it starts, for its own, and
# a compiled file in __pycache__ for a program. So the programs are copied to a folder of their own, and Python is isolated.
set -euo pipefail
source=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/plan" && pwd)
programs=$(mktemp -d)
trap 'rm -rf -- "$programs"' EXIT
for name in clusters github_api id_token latest_artifact mirrors publish reviewers summary unfinished_plan; do
    cp -- "$source/$name.py" "$programs"
done
python3 -I -c 'import runpy, sys
folder, sys.argv = sys.argv[1], sys.argv[2:]
sys.path.append(folder)
runpy.run_path(f"{folder}/{sys.argv[0]}.py", run_name="__main__")' "$programs" "$@"
