#!/usr/bin/env bash
# chain.sh clusters|validate|plan|apply|summary: what reconciler.groovy runs on an agent; CLUSTER and DIGEST say of what.
# Nothing but what base.txt names is installed, and nothing whose hash is not there: the step may hold a cluster's password.
set -euo pipefail
root=desired-state
export RECONCILER_ROOT=$root

install() { venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: "$@"; }

have_reconciler() {
    if ! command -v reconciler >/dev/null; then
        python3 -m venv venv
        install --require-hashes -r jenkins/base.txt
        install --no-deps -r jenkins/reconciler.txt
        PATH=$PWD/venv/bin:$PATH
    fi
}

# Runs a command, and keeps its exit code and first error, for the one summary of all clusters.
told() {
    { code=0; "$@" || code=$?; echo "$code" >result; } 2>&1 | tee told.log
    sed -nE '/^(error|violation): /{p;q}' told.log >>result
    return "$(sed -n 1p result)"
}

case $1 in
    clusters)
        for file in "$root"/*/cluster.yaml; do
            name=$(basename "$(dirname "$file")")
            case $name in
                *[!A-Za-z0-9._-]*) echo "error: $name is no cluster's name, so it is left out: rename the folder" >&2 ;;
                *) if [ -f "$file" ]; then echo "$name"; fi ;;
            esac
        done
        ;;
    validate)
        have_reconciler
        reconciler validate
        ;;
    plan)
        rm -f plan.json digest result
        have_reconciler
        export RECONCILER_CLUSTER=$CLUSTER
        told reconciler validate
        code=0
        told reconciler plan --out plan.json --detailed-exitcode || code=$?
        if [ -f plan.json ]; then reconciler show plan.json; fi
        if [ "$code" != 0 ] && [ "$code" != 2 ]; then exit "$code"; fi
        python3 -c 'import json
plan = json.load(open("plan.json"))
print(plan["digest"] if plan["stages"] or plan["topicChanges"] else "")' >digest
        if [ "$code" = 2 ] && ! grep -q . digest; then printf '2\ndiffers, but no plan can mend it\n' >result; fi
        ;;
    apply)
        rm -f result
        have_reconciler
        told reconciler apply plan.json --yes --digest "$DIGEST" --max-duration 5h
        ;;
    summary)
        names=$(python3 -c 'import json; print(json.dumps(open("clusters.txt").read().split()))')
        python3 jenkins/summary.py results "$names"
        ;;
esac
