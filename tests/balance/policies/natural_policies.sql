-- Policies as people write them, in the order of the plan's tables: each is asked, and answered.
SELECT topic FROM topics WHERE replication_factor < 3 AND NOT is_internal;
SELECT topic, partitions FROM topics WHERE partitions > 100 OR partitions % 2 = 1;
SELECT topic FROM topics WHERE topic NOT RLIKE '^[a-z0-9]+(\\.[a-z0-9]+)*$';
SELECT topic FROM topics WHERE is_declared AND labels['owner'] IS NULL;
SELECT topic, configs['retention.ms'] FROM topics WHERE bigint(configs['retention.ms']) > 30L * 24 * 3600 * 1000;
SELECT topic FROM topics WHERE observed_partitions IS NOT NULL AND partitions <> observed_partitions;
SELECT observed.topic FROM topics observed LEFT ANTI JOIN planned_replicas USING (topic);
SELECT broker, count(*) AS replicas FROM planned_replicas GROUP BY broker HAVING count(*) > 4000;
SELECT broker, sum(size_bytes) / 1e9 AS gb FROM planned_replicas GROUP BY ALL HAVING gb > 100;
SELECT rack, avg(replicas) FROM (SELECT rack, broker, count(*) AS replicas FROM planned_replicas GROUP BY 1, 2)
GROUP BY rack HAVING avg(replicas) > 10;
SELECT topic, partition FROM planned_replicas GROUP BY topic, partition HAVING count(DISTINCT rack) < 2;
SELECT topic, partition, collect_list(broker) AS brokers FROM planned_replicas GROUP BY 1, 2 HAVING size(brokers) >
3;
SELECT m.topic, m.partition FROM moves m JOIN topics t ON t.topic = m.topic WHERE t.labels['tier'] = 'frozen';
SELECT stage, sum(bytes) AS bytes FROM moves GROUP BY stage HAVING sum(bytes) > 1000000000000;
SELECT topic, partition, explode(array_except(to_replicas, from_replicas)) AS broker FROM moves WHERE reason =
'balance';
WITH added AS (SELECT topic, partition, explode(array_except(to_replicas, from_replicas)) AS broker FROM moves)
SELECT broker, count(*) AS copies FROM added GROUP BY broker HAVING copies > 100 ORDER BY copies DESC LIMIT 10;
SELECT b.broker, b.rack FROM brokers b WHERE NOT EXISTS (SELECT 1 FROM planned_replicas p WHERE p.broker = b.broker)
AND b.state = 'active';
SELECT broker FROM brokers WHERE usable_bytes < 0.1 * total_bytes AND is_alive;
SELECT broker, percent FROM (SELECT broker, 100 * sum(size_bytes) / sum(sum(size_bytes)) OVER () AS percent FROM
planned_replicas GROUP BY broker) WHERE percent > 50;
SELECT topic, broker FROM (SELECT topic, broker, row_number() OVER (PARTITION BY topic ORDER BY count(*) DESC,
broker) AS place FROM planned_replicas GROUP BY topic, broker) WHERE place = 1 AND topic = 'none';
SELECT topic, partition, bytes_in_peak FROM loads WHERE bytes_in_peak > 50 * 1024 * 1024;
SELECT p.broker, sum(l.bytes_in_peak) AS peak FROM planned_replicas p JOIN loads l USING (topic, partition) GROUP BY
p.broker HAVING peak > 1e8;
SELECT topic FROM topics WHERE coalesce(int(configs['min.insync.replicas']), 1) >= replication_factor;
SELECT topic, concat_ws(',', sort_array(map_keys(configs))) AS message FROM topics WHERE size(configs) > 20;
SELECT topic, partition, CASE WHEN is_leader THEN 'leads' ELSE 'follows' END AS role FROM planned_replicas WHERE
rack = 'c' AND topic LIKE 'pci.%';
SELECT split_part(topic, '.', 1) AS team, sum(partitions) AS partitions FROM topics GROUP BY team HAVING partitions
> 500;
SELECT a.topic FROM topics a JOIN topics b ON a.topic <> b.topic AND replace(a.topic, '.', '_') = replace(b.topic,
'.', '_');
SELECT topic FROM topics WHERE partitions IS DISTINCT FROM observed_partitions AND labels['keyed'] = 'true';
SELECT tier, min(replication_factor) AS rf FROM (SELECT labels['tier'] AS tier, replication_factor FROM topics)
WHERE tier IN ('gold', 'silver') GROUP BY tier HAVING rf < 3;
SELECT topic FROM topics EXCEPT SELECT topic FROM planned_replicas;
SELECT o.topic, o.partition FROM observed_replicas o JOIN planned_replicas p USING (topic, partition) WHERE
o.position = 0 AND p.position = 0 AND o.broker <> p.broker AND o.rack <> p.rack;
SELECT topic, date_format(timestamp_millis(1700000000000), 'yyyy-MM-dd') AS since FROM topics WHERE topic = '';
