"""State x request -> state, as Kafka's KRaft controller does it; and the bytes that followers copy over time."""
