-- Wide rows, client names, request keys, and a job as one snapshot. Sets of ids come as one JSON array; where many rows
-- go out they do so as one text of JSON arrays with commas between, because each fetch is a hand-over between threads.
-- For VALUES see changes.sql.

-- name: insert_job
INSERT INTO jobs (id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, payload)
VALUES (?, ?, nullif(?, 0.5), ?, ?, ?, nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5),
    nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), ?);

-- name: insert_watched_job
-- One that tells somebody or is in a trace; the others do without these columns, which are not for nothing.
INSERT INTO jobs (id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, payload, notify, trace)
VALUES (?, ?, nullif(?, 0.5), ?, ?, ?, nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5),
    nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5));

-- name: replace_job
-- The wide row after a user's change.
REPLACE INTO jobs (id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, payload, notify, trace)
VALUES (?, ?, nullif(?, 0.5), ?, ?, ?, nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5),
    nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5));

-- name: insert_job_key
INSERT INTO job_keys (namespace, name, id, body_hash) VALUES (?, ?, ?, ?);

-- name: job_keys
-- What is known of a request's names: (name, id, hash).
SELECT name, id, body_hash FROM job_keys WHERE namespace = ? AND name IN (SELECT value FROM json_each(?));

-- name: known_jobs
-- Which of these ids have a wide row already, as in a repeated call. As JSON.
SELECT group_concat(json_array(id)) FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: request_key
SELECT hash, ids FROM request_keys WHERE namespace = ? AND key = ? AND created > ?;

-- name: put_request_key
REPLACE INTO request_keys (namespace, key, hash, ids, created) VALUES (?, ?, ?, ?, ?);

-- name: jobs_of
-- As JSON; a payload longer than ?2 is null.
SELECT group_concat(json_array(
    id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, notify, trace, iif(length(payload) > ?2, NULL, payload)))
FROM jobs WHERE id IN (SELECT value FROM json_each(?1));

-- name: payloads_of
SELECT id, payload FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: job_heads_of
-- Wide rows without their payloads, as JSON.
SELECT group_concat(json_array(
    id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, notify, trace, ''))
FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: waiting_of
-- As JSON.
SELECT group_concat(json_array(
    id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, hold, parents, for_key))
FROM waiting WHERE id IN (SELECT value FROM json_each(?));

-- name: ready_of
-- With the job's own lane, as JSON.
SELECT group_concat(json_array(
    r.id, coalesce(l.base, l.id), r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version,
    r.since, r.limit_id, r.ties, r.rank))
FROM ready AS r CROSS JOIN lanes AS l ON l.id = r.lane_id WHERE r.id IN (SELECT value FROM json_each(?));

-- name: leases_of
-- As JSON.
SELECT group_concat(json_array(
    id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, worker, nonce, claimed, check_at, started, cancel_asked, progress))
FROM leases WHERE id IN (SELECT value FROM json_each(?));

-- name: history_of
-- Row by row: a result may be large.
SELECT id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
    attempt_status, worker, nonce, claimed, started, exit_code, error, result, admitted
FROM history WHERE id IN (SELECT value FROM json_each(?));

-- name: latest_attempt
-- The newest attempt that is over, of a job that has not ended by it.
SELECT id, attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted
FROM attempts WHERE id = ? ORDER BY attempt DESC LIMIT 1;

-- name: attempts_of
SELECT id, attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted
FROM attempts WHERE id = ? ORDER BY attempt;

-- name: past_outcomes
-- How attempts ended that did not end their job: (id, nonce, status), as JSON.
SELECT group_concat(json_array(id, nonce, status)) FROM attempts WHERE id IN (SELECT value FROM json_each(?));

-- name: final_outcomes
-- How the attempts ended that ended their job: (id, nonce, status), as JSON.
SELECT group_concat(json_array(id, nonce, attempt_status))
FROM history WHERE id IN (SELECT value FROM json_each(?)) AND attempt_status IS NOT NULL;

-- name: result_of
SELECT result FROM history WHERE id = ?;

-- name: held
-- Which attempts of these jobs are leased, what a log line needs: (id, nonce), as JSON.
SELECT group_concat(json_array(id, nonce)) FROM leases WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_log
INSERT INTO job_logs (log_id, id, attempt, time, level, message) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: logs_of
SELECT log_id, id, attempt, time, level, message
FROM job_logs WHERE id = ? AND log_id > ? AND level >= ? ORDER BY log_id LIMIT ?;
