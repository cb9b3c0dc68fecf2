"""Holds messages of Kafka's protocol that the client library has no class for, in the form that it reads its own in."""
