-- The record of what happened, and how many jobs stand where.

-- name: insert_events
INSERT INTO events (time, mask, happenings, entries) VALUES (?, ?, ?, ?);

-- name: events_after
-- The batches after a number, so many at most, as JSON: (number, time, happenings, entries), without entries where none
-- has a status of the mask ?3.
SELECT group_concat(line) FROM (
    SELECT '[' || number || ',' || time || ',' || coalesce(happenings, '[]') || ','
        || iif(mask & ?3, entries, '[]') || ']' AS line
    FROM events WHERE number > ?1 ORDER BY number LIMIT ?2
);

-- name: last_event
-- The highest number that was ever given, and its time.
SELECT s.seq, coalesce((SELECT time FROM events WHERE number = s.seq), 0) FROM sqlite_sequence AS s WHERE s.name = 'events';

-- name: forget_events
-- Of the first so many those from before a time.
DELETE FROM events WHERE number IN (SELECT number FROM events ORDER BY number LIMIT ?2) AND time < ?1;

-- name: lose_workers
UPDATE workers SET lost = 1 WHERE until <= ? AND NOT lost
RETURNING id, namespace, name, seen, (SELECT count(*) FROM leases WHERE worker = workers.id);

-- name: lose_nodes
-- A number that was given back has 0 as its end.
UPDATE nodes SET lost = 1 WHERE until <= ? AND until > 0 AND NOT lost RETURNING number, name, seen;

-- name: depths
-- (lane, status, jobs), as JSON.
SELECT group_concat(json_array(lane_id, status, jobs + forgotten)) FROM counters WHERE jobs + forgotten <> 0;
