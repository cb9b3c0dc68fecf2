# Sourced by the jobs: makes `reconciler-job`, installs the reconciler unless the image has it, and keeps its exit code.
# Nothing but what base.txt names is installed, and nothing whose hash is not there: the job may hold a cluster's password.
# So nothing else of the repository is run or believed: the environment is outside of it, -I keeps Python from modules in
# it, pip obeys no file and few variables, and what was committed as `reconciler-job` is removed before the job begins.
rm -rf reconciler-job
mkdir reconciler-job
for name in $(env | sed -n 's/^\(PIP_[A-Z_]*\)=.*/\1/p'); do
    case $name in PIP_INDEX_URL | PIP_FIND_LINKS | PIP_CERT | PIP_PROXY) ;; *) unset "$name" ;; esac
done
export PIP_CONFIG_FILE=/dev/null
if ! command -v reconciler >/dev/null; then
    venv=$(mktemp -d)
    install() { "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$@"; }
    python3 -I -m venv "$venv"
    install --require-hashes -r .gitlab/reconciler/base.txt
    install --no-deps -r .gitlab/reconciler/reconciler.txt
    PATH=$venv/bin:$PATH
fi
# A token of GitLab's own, in a file that AWS's library and OAUTHBEARER read.
if [ -n "${ID_TOKEN:-}" ]; then
    ID_TOKEN_FILE=$(mktemp)
    AWS_WEB_IDENTITY_TOKEN_FILE=$ID_TOKEN_FILE
    export ID_TOKEN_FILE AWS_WEB_IDENTITY_TOKEN_FILE
    printf %s "$ID_TOKEN" >"$ID_TOKEN_FILE"
fi
# told COMMAND...: runs it, and keeps its exit code and first error in `result`, for the one summary of all clusters.
# A command that is killed leaves no result, rather than the 0 of the command before it.
told() {
    rm -f reconciler-job/result
    { code=0; "$@" || code=$?; echo "$code" >reconciler-job/result; } 2>&1 | tee reconciler-job/log
    sed -nE '/^(error|violation): /{p;q}' reconciler-job/log >>reconciler-job/result
    return "$(sed -n 1p reconciler-job/result)"
}
