-- Job lists: each place of a job gives its newest rows below an id, as JSON; the lists are merged.

-- name: list_waiting
SELECT group_concat(line) FROM (
    SELECT json_array(
        id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
        limit_id, ties, hold, parents, for_key) AS line
    FROM waiting WHERE id < ? ORDER BY id DESC LIMIT ?
);

-- name: list_for_key
-- Those that wait only for a token of their concurrency key.
SELECT group_concat(line) FROM (
    SELECT json_array(
        id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
        limit_id, ties, hold, parents, for_key) AS line
    FROM waiting WHERE for_key = 1 AND id < ? ORDER BY id DESC LIMIT ?
);

-- name: list_ready
-- With the job's own lane.
SELECT group_concat(line) FROM (
    SELECT json_array(
        r.id, coalesce(l.base, l.id), r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost,
        r.version, r.since, r.limit_id, r.ties, r.rank) AS line
    FROM ready AS r CROSS JOIN lanes AS l ON l.id = r.lane_id WHERE r.id < ? ORDER BY r.id DESC LIMIT ?
);

-- name: list_leases
SELECT group_concat(line) FROM (
    SELECT json_array(
        id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
        limit_id, ties, worker, nonce, claimed, check_at, started, cancel_asked, progress) AS line
    FROM leases WHERE id < ? ORDER BY id DESC LIMIT ?
);

-- name: list_history
-- Without results.
SELECT group_concat(line) FROM (
    SELECT json_array(
        id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
        attempt_status, worker, nonce, claimed, started, exit_code, error, NULL, admitted) AS line
    FROM history WHERE id < ? ORDER BY id DESC LIMIT ?
);

-- name: list_not_completed
-- History of one state other than completed (5), by its partial index.
SELECT group_concat(line) FROM (
    SELECT json_array(
        id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
        attempt_status, worker, nonce, claimed, started, exit_code, error, NULL, admitted) AS line
    FROM history WHERE state <> 5 AND state = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2
);

-- name: list_of_schedule
SELECT group_concat(line) FROM (
    SELECT json_array(id) AS line FROM jobs WHERE schedule_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2
);
