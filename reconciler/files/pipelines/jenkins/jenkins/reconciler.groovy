// For each cluster, a folder of the root, a branch of its own: its plan, somebody's approval of it, its apply. The
// Jenkinsfile of a multibranch pipeline needs no more than this, whatever clusters there are:
//   def reconciler
//   node { checkout scm; reconciler = load 'jenkins/reconciler.groovy' }
//   reconciler.clusters()
// Credentials with the id kafka-CLUSTER (user name and password) are the cluster's; the user or group kafka-CLUSTER may
// approve. Agents need bash and Python 3.11. A pull request is validated, and is given nothing: whoever opens it may
// change this file. Builds that run at once are kept apart by the lock in each cluster.
def clusters() {
    List names = []
    stage('clusters') {
        node {
            checkout scm
            names = sh(script: 'bash jenkins/chain.sh clusters', returnStdout: true).readLines()
        }
    }
    if (env.CHANGE_ID) {
        stage('validate') {
            node {
                checkout scm
                sh 'bash jenkins/chain.sh validate'
            }
        }
        return
    }
    Map results = [:]
    Map chains = [:]
    for (int i = 0; i < names.size(); i++) {
        String cluster = names[i]
        chains[cluster] = { chain(cluster, results) }
    }
    parallel chains // one that fails stops no other
    stage('summary') {
        node {
            checkout scm
            for (int i = 0; i < names.size(); i++) {
                for (String verb in ['plan', 'apply']) {
                    String left = "result-${verb}-${names[i]}".toString()
                    if (results[left]) {
                        writeFile file: "results/${left}/result", text: results[left]
                    }
                }
            }
            writeFile file: 'clusters.txt', text: names.join('\n')
            sh 'bash jenkins/chain.sh summary'
        }
    }
}

def chain(String cluster, Map results) {
    catchError(buildResult: 'FAILURE', stageResult: 'FAILURE') {
        String digest = ''
        stage("${cluster}: plan") {
            node {
                checkout scm
                asked(cluster, 'plan', '', results)
                digest = readFile('digest').trim()
                if (digest) {
                    stash name: "plan-${cluster}", includes: 'plan.json'
                }
            }
        }
        if (digest) { // else there is nothing to apply, and nobody is asked
            // Outside a node: a build that waits for an answer holds no executor.
            stage("${cluster}: approval") {
                input message: "Apply to ${cluster} the plan ${digest}? The log of its stage shows it.",
                    ok: 'Apply', submitter: "kafka-${cluster}"
            }
            stage("${cluster}: apply") {
                node {
                    checkout scm
                    unstash "plan-${cluster}"
                    asked(cluster, 'apply', digest, results)
                    archiveArtifacts artifacts: 'runs/**', allowEmptyArchive: true
                }
            }
        }
    }
}

// What the digest is was settled before the approval, and is handed on by this script, in no file that a job could write.
def asked(String cluster, String verb, String digest, Map results) {
    try {
        withCredentials([usernamePassword(credentialsId: "kafka-${cluster}", usernameVariable: 'KAFKA_USERNAME',
                                          passwordVariable: 'KAFKA_PASSWORD')]) {
            withEnv(["CLUSTER=${cluster}", "DIGEST=${digest}"]) {
                sh "bash jenkins/chain.sh ${verb}"
            }
        }
    } finally {
        if (fileExists('result')) {
            results["result-${verb}-${cluster}".toString()] = readFile('result')
        }
    }
}

return this
