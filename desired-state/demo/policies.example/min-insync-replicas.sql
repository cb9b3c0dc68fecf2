-- A topic has more replicas than min.insync.replicas.
-- Otherwise nobody can write to it with acks=all while one broker is down.
WITH wanted AS (
  SELECT *, int(coalesce(configs['min.insync.replicas'], '1')) AS min_insync_replicas FROM topics WHERE NOT is_internal
)
SELECT topic, replication_factor, min_insync_replicas FROM wanted WHERE replication_factor <= min_insync_replicas
