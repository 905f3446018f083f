-- The record of what happened, when attempts became ready, whom a job tells and in which trace it is, and which workers
-- and nodes are known to be lost.

-- A batch: what one transaction did to jobs, `entries` as JSON (an array for each column, of one value where it is the
-- same for all), a bit in `mask` for each status in them, and what else happened, `happenings`, as JSON. A number is
-- never given twice, whatever was taken away.
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    mask INTEGER NOT NULL,
    happenings TEXT,
    entries TEXT
);

ALTER TABLE jobs ADD COLUMN notify TEXT;
ALTER TABLE jobs ADD COLUMN trace TEXT;

-- When only a worker was missing; null of attempts from before it was noted.
ALTER TABLE attempts ADD COLUMN admitted INTEGER;

-- Written anew, so that errors and results stay behind all other columns: what lies behind a long one is slow to read.
CREATE TABLE history_with_admitted (
    id INTEGER PRIMARY KEY,
    lane_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,
    attempt INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    version INTEGER NOT NULL,
    due INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    attempt_status INTEGER,
    worker INTEGER,
    nonce INTEGER,
    admitted INTEGER,
    claimed INTEGER,
    started INTEGER,
    exit_code INTEGER,
    error TEXT,
    result TEXT
);
INSERT INTO history_with_admitted (id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
    attempt_status, worker, nonce, claimed, started, exit_code, error, result)
SELECT id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
    attempt_status, worker, nonce, claimed, started, exit_code, error, result
FROM history ORDER BY id;
DROP TABLE history;
ALTER TABLE history_with_admitted RENAME TO history;
CREATE INDEX history_not_completed ON history (state, id) WHERE state <> 5;

-- How many of those that were counted once are forgotten by now.
ALTER TABLE counters ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

ALTER TABLE workers ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
