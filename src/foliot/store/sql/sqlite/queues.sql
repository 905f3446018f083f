-- Queues, what they hold back, and the order of their ready jobs. A job's own lane is the base of the lane that it stands
-- in. For JSON see jobs.sql, for VALUES changes.sql.

-- name: make_queue
INSERT INTO queues (namespace, name, version, ordered, paused, special, next_beat, fair_time, rules)
VALUES (?, ?, 1, 1, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING;

-- name: make_lane
-- Does nothing where it is known.
INSERT INTO lanes (namespace, queue, job_type, needs, ordering, queue_id, base)
SELECT ?1, ?2, ?3, ?4, ?5, q.id, (
    SELECT id FROM lanes
    WHERE namespace = ?1 AND queue = ?2 AND job_type = ?3 AND needs = ?4 AND ordering = '' AND ?5 <> ''
)
FROM queues AS q WHERE q.namespace = ?1 AND q.name = ?2 ON CONFLICT DO NOTHING;

-- name: lane_number
SELECT id FROM lanes WHERE namespace = ? AND queue = ? AND job_type = ? AND needs = ? AND ordering = ?;

-- name: all_lanes
SELECT id, namespace, queue, job_type, needs, ordering FROM lanes;

-- name: lanes_numbered
SELECT id, namespace, queue, job_type, needs, ordering FROM lanes WHERE id IN (SELECT value FROM json_each(?));

-- name: queues_after
-- By name, those after ?2, so many at most, as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id, namespace, name, version, ordered, paused, rules) AS line
    FROM queues WHERE namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3
);

-- name: queues_among
-- By name, those that have one of these names, as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id, namespace, name, version, ordered, paused, rules) AS line
    FROM queues WHERE namespace = ? AND name IN (SELECT value FROM json_each(?)) ORDER BY name
);

-- name: special_queues
-- As JSON.
SELECT group_concat(json_array(id, namespace, name, version, ordered, paused, rules)) FROM queues WHERE special = 1;

-- name: queue_named
SELECT id, namespace, name, version, ordered, paused, rules, next_beat FROM queues WHERE namespace = ? AND name = ?;

-- name: queue_of_lane
-- The queue of a lane, and which lane it is: that one's names, and the lane that is its jobs' own.
SELECT q.id, q.namespace, q.name, q.version, q.ordered, q.paused, q.rules, q.fair_time,
    l.namespace, l.queue, l.job_type, l.needs, l.ordering, coalesce(l.base, l.id)
FROM lanes AS l CROSS JOIN queues AS q ON q.id = l.queue_id WHERE l.id = ?;

-- name: put_queue
UPDATE queues SET version = ?2, ordered = ?3, paused = ?4, special = ?5, next_beat = ?6, rules = ?7 WHERE id = ?1;

-- name: count_all_leases
-- From now on all leases of a queue count for its max_concurrency, or (?2 is null) none.
UPDATE leases SET queue_id = ?2 WHERE lane_id IN (SELECT id FROM lanes WHERE queue_id = ?1);

-- name: count_leases
-- These leases count for their queue's max_concurrency.
UPDATE leases SET queue_id = (SELECT queue_id FROM lanes WHERE id = leases.lane_id)
WHERE id IN (SELECT value FROM json_each(?));

-- name: queues_of_leases
-- Those for whose max_concurrency one of these leases counts, as JSON.
SELECT group_concat(DISTINCT json_array(queue_id)) FROM leases
WHERE id IN (SELECT value FROM json_each(?)) AND queue_id IS NOT NULL;

-- name: special_lanes
-- Of these lanes those that are not plain: (lane, ordering, queue, the version that ordered it, whether nothing may
-- start, rules), as JSON.
SELECT group_concat(json_array(id, ordering, queue_id, ordered, paused OR held, rules)) FROM (
    SELECT l.id, l.ordering, q.id AS queue_id, q.ordered, q.paused, q.rules, q.special,
        EXISTS (SELECT 1 FROM held_types WHERE namespace = l.namespace AND job_type = l.job_type) AS held
    FROM json_each(?) AS k CROSS JOIN lanes AS l ON l.id = k.value CROSS JOIN queues AS q ON q.id = l.queue_id
)
WHERE special OR held OR ordering <> '';

-- name: rooms_of
-- (queue, rules, the rate's next beat, how many leases count), as JSON.
SELECT group_concat(json_array(
    q.id, q.rules, q.next_beat, (SELECT count(*) FROM leases WHERE queue_id = q.id AND queue_id IS NOT NULL)
))
FROM json_each(?) AS k CROSS JOIN queues AS q ON q.id = k.value;

-- name: charge_queue
-- What a claim changes of a queue; null leaves a column as it is, and the queue's time never goes back.
WITH charges (id, next_beat, fair_time) AS (
    VALUES (?, nullif(?, 0.5), nullif(?, 0.5))
)
UPDATE queues SET next_beat = coalesce(m.next_beat, queues.next_beat),
    fair_time = max(queues.fair_time, coalesce(m.fair_time, queues.fair_time))
FROM charges AS m WHERE queues.id = m.id;

-- name: queue_crowds
-- (queue, running, (ready, the earliest due time of those)), of at most ?2 ready ones; as JSON.
SELECT group_concat(json_array(
    q.id,
    (
        SELECT coalesce(sum(c.jobs), 0)
        FROM lanes AS l CROSS JOIN counters AS c ON c.lane_id = l.id AND c.status = 'running' WHERE l.queue_id = q.id
    ),
    json((
        SELECT json_array(count(*), min(due)) FROM (
            SELECT r.due FROM lanes AS l CROSS JOIN ready AS r ON r.lane_id = l.id WHERE l.queue_id = q.id LIMIT ?2
        )
    ))
))
FROM json_each(?1) AS k CROSS JOIN queues AS q ON q.id = k.value;

-- name: first_of_lane
-- The first of a lane, so many at most: (id, priority, due), as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id, priority, due) AS line FROM ready WHERE lane_id = ? ORDER BY rank, id LIMIT ?
);

-- name: first_keys_of_lane
-- The first of a lane, so many at most: (id, fair key), as JSON.
SELECT group_concat(json_array(r.id, coalesce(j.fair_key, j.owner)))
FROM (SELECT id FROM ready WHERE lane_id = ? ORDER BY rank, id LIMIT ?) AS r CROSS JOIN jobs AS j ON j.id = r.id;

-- name: rank_ready
-- Ready rows go to a lane, with a rank.
WITH ranks (id, lane_id, rank) AS (
    VALUES (?, ?, ?)
)
UPDATE ready SET lane_id = m.lane_id, rank = m.rank FROM ranks AS m WHERE ready.id = m.id;

-- name: shares_of
-- Where the times of these fair keys of a queue stand, as JSON.
SELECT group_concat(json_array(fair_key, time)) FROM shares
WHERE queue_id = ? AND fair_key IN (SELECT value FROM json_each(?));

-- name: put_share
REPLACE INTO shares (queue_id, fair_key, time) VALUES (?, ?, ?);

-- name: refund_share
UPDATE shares SET time = time - ?3 WHERE queue_id = ?1 AND fair_key = ?2;

-- name: forget_all_shares
DELETE FROM shares WHERE queue_id = ?;

-- name: forget_shares
-- Those that are behind their queue's time, where a key that has none stands too; so many at most.
DELETE FROM shares WHERE (queue_id, fair_key) IN (
    SELECT s.queue_id, s.fair_key FROM queues AS q CROSS JOIN shares AS s ON s.queue_id = q.id
    WHERE q.special = 1 AND s.time <= q.fair_time LIMIT ?
);

-- name: hold_type
INSERT INTO held_types (namespace, job_type) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: release_type
DELETE FROM held_types WHERE namespace = ? AND job_type = ?;

-- name: held_types
SELECT job_type FROM held_types WHERE namespace = ? ORDER BY job_type;

-- name: all_held_types
SELECT namespace, job_type FROM held_types;
