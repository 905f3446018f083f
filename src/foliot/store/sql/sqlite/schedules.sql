-- Schedules, the ledger of their due times, and their runs under way. Verdicts are the numbers of domain.schedule: with
-- 1 (ran), 3 (caught up) and 4 (backfilled) a due time has its job. For JSON see jobs.sql, for VALUES changes.sql.

-- name: schedule_versions
-- The version at which each of these stands, as JSON.
SELECT group_concat(json_array(id, version)) FROM schedules WHERE id IN (SELECT value FROM json_each(?));

-- name: schedule_named
SELECT id FROM schedules WHERE namespace = ? AND name = ?;

-- name: put_schedule
-- A new one, or the next state of one that is there.
INSERT INTO schedules (id, namespace, name, owner, created, changed, paused, next_due, runs, backfill_limit, version,
    edition, plan, definition)
VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, changed = excluded.changed, paused = excluded.paused,
    next_due = excluded.next_due, runs = excluded.runs, backfill_limit = excluded.backfill_limit,
    version = excluded.version, edition = excluded.edition, plan = excluded.plan, definition = excluded.definition;

-- name: put_run
-- A row of the ledger, unless the one in its place has its job, or both wait.
INSERT INTO ledger (schedule, due, until, count, exact, verdict, promised, reason, decided)
VALUES (?, ?, ?, ?, ?, nullif(?, 0.5), ?, nullif(?, 0.5), ?)
ON CONFLICT (schedule, due, until) DO UPDATE SET count = excluded.count, exact = excluded.exact,
    verdict = excluded.verdict, promised = excluded.promised, reason = excluded.reason, decided = excluded.decided
WHERE coalesce(verdict, 0) NOT IN (1, 3, 4) AND coalesce(verdict, excluded.verdict) IS NOT NULL;

-- name: open_run
INSERT INTO open_runs (id, schedule, backfill) VALUES (?, ?, ?);

-- name: remove_schedule
DELETE FROM schedules WHERE id = ? AND version = ? RETURNING id;

-- name: remove_waiting
-- By the index of what waits: the rest of the ledger may be long.
DELETE FROM ledger INDEXED BY ledger_waiting WHERE schedule = ? AND verdict IS NULL;

-- name: remove_open_runs
DELETE FROM open_runs WHERE schedule = ?;

-- name: schedules_of
-- As JSON; a definition longer than ?2 is null.
SELECT group_concat(json_array(
    id, namespace, name, owner, created, changed, paused, next_due, runs, backfill_limit, version, edition, plan,
    iif(length(definition) > ?2, NULL, definition)))
FROM schedules WHERE id IN (SELECT value FROM json_each(?1));

-- name: definitions_of
SELECT id, definition FROM schedules WHERE id IN (SELECT value FROM json_each(?));

-- name: list_schedules
-- The newest below an id, as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id) AS line FROM schedules WHERE namespace = ? AND id < ? ORDER BY id DESC LIMIT ?
);

-- name: schedules_due
-- Those due up to a time, earliest first, as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id) AS line FROM schedules
    WHERE paused = 0 AND next_due IS NOT NULL AND next_due <= ? ORDER BY next_due, id LIMIT ?
);

-- name: next_schedule
SELECT id FROM schedules WHERE paused = 0 AND next_due IS NOT NULL ORDER BY next_due, id LIMIT 1;

-- name: standings_of
-- What comes with each of these schedules, of either list ?2 at most: (id, runs under way, how many of a backfill,
-- waiting due times), as JSON.
SELECT group_concat(json_array(
    k.value,
    json((
        SELECT json_group_array(id) FROM (
            SELECT id FROM open_runs WHERE schedule = k.value AND backfill = 0 ORDER BY id LIMIT ?2
        )
    )),
    (SELECT count(*) FROM open_runs WHERE schedule = k.value AND backfill = 1),
    json((
        SELECT json_group_array(json(line)) FROM (
            SELECT json_array(due, until, count, exact, verdict, promised, reason, decided) AS line
            FROM ledger WHERE schedule = k.value AND verdict IS NULL ORDER BY (promised = 4), due LIMIT ?2
        )
    ))
))
FROM json_each(?1) AS k;

-- name: waiting_schedules
-- Those after ?2. One index look-up for each schedule that has waiting due times, however many those are; as JSON.
WITH RECURSIVE holder (id) AS (
    SELECT min(schedule) FROM ledger WHERE verdict IS NULL AND schedule > ?2
    UNION ALL
    SELECT (SELECT min(schedule) FROM ledger WHERE verdict IS NULL AND schedule > holder.id)
    FROM holder WHERE id IS NOT NULL
)
SELECT group_concat(json_array(id)) FROM (
    SELECT s.id FROM holder AS h CROSS JOIN schedules AS s ON s.id = h.id WHERE s.paused = 0 LIMIT ?1
);

-- name: runs_of
-- The ledger of a schedule, newest first, from before a time on; as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(due, until, count, exact, verdict, promised, reason, decided) AS line
    FROM ledger WHERE schedule = ? AND due < ? ORDER BY due DESC, until DESC LIMIT ?
);

-- name: settled_dues
-- As JSON.
SELECT group_concat(json_array(due)) FROM ledger
WHERE schedule = ? AND due BETWEEN ? AND ? AND coalesce(verdict, 1) IN (1, 3, 4);

-- name: due_by_minute
-- Of a namespace: (start of the minute, waiting jobs), as JSON.
SELECT group_concat(json_array(minute, jobs)) FROM (
    SELECT w.due / 60000000 * 60000000 AS minute, count(*) AS jobs
    FROM waiting AS w CROSS JOIN lanes AS l ON l.id = w.lane_id
    WHERE w.hold = 0 AND w.parents = 0 AND w.for_key = 0 AND w.due >= ?2 AND w.due < ?3 AND l.namespace = ?1 GROUP BY 1
);
