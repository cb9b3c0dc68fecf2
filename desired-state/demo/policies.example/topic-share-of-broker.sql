-- No topic holds more than 40 % of a broker's bytes.
WITH held AS (
  SELECT broker, topic, sum(size_bytes) AS bytes FROM planned_replicas GROUP BY broker, topic
), shares AS (
  SELECT broker, topic, 100 * bytes / sum(bytes) OVER (PARTITION BY broker) AS percent FROM held WHERE bytes > 0
)
SELECT broker, topic, round(percent, 1) AS percent FROM shares WHERE percent > 40
