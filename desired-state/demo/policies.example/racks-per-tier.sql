-- A partition of tier gold stands in three racks, one of tier silver in two.
-- The tier is a label of the topic: metadata: {name: orders, labels: {tier: gold}}
WITH tiers AS (
  SELECT * FROM VALUES ('gold', 3), ('silver', 2) AS tiers (tier, racks)
)
SELECT topic, partition, tiers.tier, count(DISTINCT rack) AS racks
FROM planned_replicas
JOIN topics USING (topic)
JOIN tiers ON tiers.tier = labels['tier']
WHERE position IS NOT NULL
GROUP BY topic, partition, tiers.tier, tiers.racks
HAVING count(DISTINCT rack) < tiers.racks
