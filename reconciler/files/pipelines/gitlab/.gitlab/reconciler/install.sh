# Sourced by the jobs: installs the reconciler unless the image has it, and says how its exit code and first error are kept.
# Nothing but what base.txt names is installed, and nothing whose hash is not there: the job may hold a cluster's password.
install() { venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: "$@"; }
if ! command -v reconciler >/dev/null; then
    python3 -m venv venv
    install --require-hashes -r .gitlab/reconciler/base.txt
    install --no-deps -r .gitlab/reconciler/reconciler.txt
    PATH=$PWD/venv/bin:$PATH
fi
# told COMMAND...: runs it, and keeps its exit code and first error in `result`, for the one summary of all clusters.
told() {
    { code=0; "$@" || code=$?; echo "$code" >result; } 2>&1 | tee told.log
    sed -nE '/^(error|violation): /{p;q}' told.log >>result
    return "$(sed -n 1p result)"
}
