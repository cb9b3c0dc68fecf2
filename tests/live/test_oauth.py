"""A login by token on a real broker: OAUTHBEARER, with the tokens that nobody signs which Kafka takes for tests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster

from reconciler.admin.client import connect
from reconciler.admin.client.oauth import ENDPOINT, LOGIN_MODULE, UNSIGNED
from reconciler.model.problem import ClusterUnavailable

pytestmark = pytest.mark.brokers

SETTINGS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.client.oauthbearer.sasl.jaas.config": f'{LOGIN_MODULE} required {UNSIGNED}="broker";',
}


def test_a_token_logs_in_and_one_of_nobody_does_not(new_kafka: Callable[..., KafkaCluster], tmp_path: Path) -> None:
    kafka = new_kafka(broker_ids=(1,), users={"admin": "unused"}, settings=SETTINGS)
    plain = kafka.properties_of("admin")
    given = {name: plain[name] for name in ("bootstrap.servers", "security.protocol")} | {
        "sasl.mechanism": "OAUTHBEARER"
    }
    admin = connect({**given, "sasl.jaas.config": f'{LOGIN_MODULE} required {UNSIGNED}="admin";'})
    try:
        assert admin.cluster_id() == kafka.cluster_id
    finally:
        admin.close()
    (tmp_path / "jwt").write_text("not.a.token", "utf-8")
    with pytest.raises(ClusterUnavailable, match=r"refused the login\. Check whose token") as refused:
        connect({**given, ENDPOINT: f"file://{tmp_path}/jwt"})
    assert "not.a.token" not in str(refused.value)
    with pytest.raises(ClusterUnavailable, match=r"does not offer the mechanism of sasl\.mechanism"):
        connect({**given, "sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": "unused"})
