#!/usr/bin/env bash
# Installs the reconciler with the extras named; steps find it on PATH. It is the version that .github/locks/reconciler.txt
# names or, without that file, the one that this repository is the source of. Of what it stands on, nothing but what the
# locks name is installed, and nothing whose hash is not there: the job may hold a cluster's password.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
locks="$root/.github/locks"
case ${1:-} in
    "") lock=base ;;
    loads) lock=loads ;;
    spark | all) lock=spark ;;
    *)
        echo "::error::extras: '$1' has no lock in .github/locks; give loads, spark, all, or nothing." >&2
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
