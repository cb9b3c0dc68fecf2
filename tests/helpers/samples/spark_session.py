"""One Spark session for the whole test run: a test that takes `spark` is marked so, and shares it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURE = "spark"
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:CompileThresholdScaling=1"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# Tests run each plan once, on a handful of rows: to compile it, or to plan it again while it runs, costs more than to
# run it. What Spark does for a user is shown by programs of their own, in tests/balance/test_any_spark.py (which
# compares both) and tests/cli/test_balance.py.
AS_IT_STANDS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# The same Java answers clients of Spark Connect, at a port that is free.
ANSWERS_CLIENTS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
# Deep tests have millions of rows.
AS_USERS_HAVE_IT = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that takes the session, before what has no mark is called quick."""
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Return the session, on two local cores; the program's own verbs find and use it, and leave it alive."""
    from pyspark.sql import SparkSession

    from reconciler.balance.spark.settings import SparkChoice, settings

    builder = SparkSession.builder
    # What serves clients makes the folder of tables where Java began: in the checkout, by default.
    own = {
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    chosen = settings(SparkChoice("local[2]", "1g", conf=own), {}) | AS_IT_STANDS | ANSWERS_CLIENTS
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(spark: "SparkSession") -> str:
    """Return the URL at which the session's Java answers clients of Spark Connect."""
    assert spark._jvm is not None
    services = spark._jvm.org.apache.spark.sql.connect.service
    the_service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")  # as Java names Scala's object
    return f"sc://127.0.0.1:{the_service.localPort()}"


@pytest.fixture(autouse=True)
def _compiled_where_deep(request: pytest.FixtureRequest) -> Iterator[None]:
    if FIXTURE not in request.fixturenames or not request.node.get_closest_marker("deep"):
        yield
        return
    conf = request.getfixturevalue(FIXTURE).conf
    for name, value in AS_USERS_HAVE_IT.items():
        conf.set(name, value)
    yield
    for name in AS_USERS_HAVE_IT:
        conf.set(name, AS_IT_STANDS[name])
