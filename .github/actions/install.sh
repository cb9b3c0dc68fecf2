#!/usr/bin/env bash
# Installs the reconciler with the extras named; steps find it on PATH. It is the version that .github/locks/reconciler.txt
# names or, without that file, the one that this repository is the source of. Of what it stands on, nothing but what the
# locks name is installed, and nothing whose hash is not there: the job may hold a cluster's password.
set -euo pipefail
extras=
audience=
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
locks="$root/.github/locks"
case ${1:-$extras} in
    "") lock=base ;;
    aws | loads) lock=${1:-$extras} ;;
    spark | all) lock=spark ;;
    *)
        echo "::error::extras: '${1:-$extras}' has no lock in .github/locks; give aws, loads, spark, all, or nothing." >&2
        exit 1
        ;;
esac
# Outside of the repository, whose files would be taken for parts of an environment; -I keeps out what lies where it starts.
venv="$RUNNER_TEMP/reconciler"
# pip obeys no other variable and no file: these say where from, and the hashes say what.
for name in $(env | sed -n 's/^\(PIP_[A-Z_]*\)=.*/\1/p'); do
    case $name in PIP_INDEX_URL | PIP_FIND_LINKS | PIP_CERT | PIP_PROXY) ;; *) unset "$name" ;; esac
done
export PIP_CONFIG_FILE=/dev/null
install() { "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
if [ ! -x "$venv/bin/reconciler" ]; then
    python3 -I -m venv "$venv"
    install --require-hashes --only-binary :all: -r "$locks/build.txt"
    # PySpark has no wheel: it is built by what build.txt names, as is the reconciler itself.
    install --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation -r "$locks/$lock.txt"
    if [ -f "$locks/reconciler.txt" ]; then
        install --no-deps --only-binary :all: -r "$locks/reconciler.txt"
    else
        install --no-index --no-deps --no-build-isolation "$root"
    fi
fi
echo "$venv/bin" >>"$GITHUB_PATH"
# A job with `id-token: write` has a token of GitHub's own, in a file that AWS's library and OAUTHBEARER read.
if [ -n "$audience" ] && [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
    token="$RUNNER_TEMP/id-token"
    "$root/.github/actions/python.sh" id_token "$audience" "$token" >"$token.log" 2>&1 &
    for _ in $(seq 600); do if [ -s "$token" ] || ! kill -0 $! 2>/dev/null; then break; fi; sleep 0.1; done
    if [ ! -s "$token" ]; then
        cat "$token.log" >&2
        echo "::error::GitHub gave this job no identity token for $audience: run the job again." >&2
        exit 1
    fi
    { echo "ID_TOKEN_FILE=$token"; echo "AWS_WEB_IDENTITY_TOKEN_FILE=$token"; } >>"$GITHUB_ENV"
fi
