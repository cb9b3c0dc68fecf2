"""Messages of Kafka's protocol that the client library has no class for, in the form in which it reads its own."""
