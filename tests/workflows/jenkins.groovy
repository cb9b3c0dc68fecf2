// Runs a Jenkinsfile as Jenkins would, on this machine: REPOSITORY FOLDER APPROVED..., where APPROVED are those who answer
// `input`. What each step printed, what was asked and how the build ended goes to FOLDER/build.json.
import groovy.json.JsonOutput

def (repository, folder) = [new File(args[0]), new File(args[1])]
def approvers = args.drop(2) as List
def log = new StringBuffer(), asked = [], variables = [[:]], nodes = [], stashes = [:], given = []
def result = 'SUCCESS'
def count = 0

def copy = { File from, File to ->
    to.parentFile.mkdirs()
    assert ['cp', '-rT', from.path, to.path].execute().waitFor() == 0
}
def here = { String name -> new File(nodes.last(), name) }

def steps = [
    scm: 'scm',
    env: [CHANGE_ID: System.getenv('CHANGE_ID')],
    stage: { String name, Closure body -> log << "[stage ${name}]\n"; body() },
    node: { Closure body ->
        nodes << new File(folder, "node-${++count}")
        nodes.last().mkdirs()
        try {
            body()
        } finally {
            new File(nodes.last(), 'desired-state').eachDir { cluster ->  // a simulated cluster is a file, and no checkout's
                def state = new File(cluster, 'snapshot.json')
                if (state.exists()) { copy(state, new File(repository, "desired-state/${cluster.name}/snapshot.json")) }
            }
            nodes.removeLast()
        }
    },
    checkout: { scm -> copy(repository, nodes.last()) },
    sh: { step ->
        def script = step instanceof Map ? step.script : step
        def builder = new ProcessBuilder('bash', '-e', '-c', script.toString()).directory(nodes.last())
        variables.each { more -> more.each { name, value -> builder.environment()[name.toString()] = value.toString() } }
        def out = new File(folder, 'out'), err = new File(folder, 'err')
        def code = builder.redirectOutput(out).redirectError(err).start().waitFor()
        log << out.text << err.text
        if (code) { throw new RuntimeException("script returned exit code ${code}") }
        step instanceof Map && step.returnStdout ? out.text : null
    },
    readFile: { String name -> here(name).text },
    writeFile: { Map step -> here(step.file.toString()).with { parentFile.mkdirs(); text = step.text } },
    fileExists: { String name -> here(name).exists() },
    stash: { Map step -> stashes[step.name.toString()] = here(step.includes).text },
    unstash: { name -> here('plan.json').text = stashes[name.toString()] },
    archiveArtifacts: { Map step -> },
    usernamePassword: { Map step -> step },
    withCredentials: { List credentials, Closure body ->
        given << credentials[0].credentialsId.toString()
        variables << [(credentials[0].usernameVariable): 'user', (credentials[0].passwordVariable): 'canary-73']
        try { body() } finally { variables.removeLast() }
    },
    withEnv: { List more, Closure body ->
        variables << more.collectEntries { it.toString().split('=', 2) as List }
        try { body() } finally { variables.removeLast() }
    },
    input: { Map step ->
        asked << [message: step.message.toString(), submitter: step.submitter.toString(), isOnNode: !nodes.isEmpty()]
        if (!(step.submitter.toString() in approvers)) { throw new RuntimeException('rejected') }
    },
    parallel: { Map branches -> branches.each { name, body -> body() } },
    catchError: { Map step, Closure body ->
        try { body() } catch (RuntimeException error) { log << "${error.message}\n"; result = step.buildResult }
    },
]
def shell = new GroovyShell(new Binding(steps))
steps.load = { String name -> shell.evaluate(here(name)) }
shell.setVariable('load', steps.load)
try {
    shell.evaluate(new File(repository, 'Jenkinsfile'))
} catch (RuntimeException error) {
    log << "${error.message}\n"
    result = 'FAILURE'
}
new File(folder, 'build.json').text = JsonOutput.toJson([result: result, log: log.toString(), asked: asked, given: given])
