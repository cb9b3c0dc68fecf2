"""Speaks to a real cluster through kafka-python: nothing else in the product imports that library.

Requests are built and sent here one by one, because the library's own admin methods drop error codes, stop at the
first broker that is down, and remember a controller that has died. From the top down:

- `kafka_admin`: `connect(properties)` and `KafkaAdmin`, the port's methods;
- `observe`, `log_dirs`, `offsets`, `groups`, `vitals`: what is read, and what an answer means;
- `requests`, `group_writes`: what is written, item by item;
- `lock`, `lock_member`, `lock_kept`: the lead of a group as the cluster's lock, and the text that its holder keeps;
- `wire`: one request to one broker: who is asked, what is retried, what an answer that never came means;
- `connecting`, `checks`: how connections are opened, and what only another property or certificate would mend;
- `properties`, `tls`, `oauth`, `redact`: what a user wrote, as the library takes it, and what may not be in a log.
"""

from reconciler.admin.client.kafka_admin import KafkaAdmin, connect

__all__ = ["KafkaAdmin", "connect"]
