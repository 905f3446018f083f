-- Jobs, where they stand, how they ended; workers and nodes. Times are microseconds since 1970, states the numbers of
-- domain.job. Columns that may be large come last, so that a scan of the others does not read them.

CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    job_type TEXT NOT NULL,
    UNIQUE (namespace, queue, job_type)
);

-- What was asked: written once. `retry` and `tags` are JSON, null where they are the default.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    lane_id INTEGER NOT NULL,
    name TEXT,
    priority INTEGER NOT NULL,
    due INTEGER NOT NULL,
    created INTEGER NOT NULL,
    retry TEXT,
    timeout INTEGER NOT NULL,
    deadline INTEGER,
    tags TEXT,
    owner TEXT NOT NULL,
    schedule_id TEXT,
    payload TEXT NOT NULL
);
CREATE INDEX jobs_of_schedule ON jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;

CREATE TABLE job_keys (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    id INTEGER NOT NULL,
    body_hash BLOB NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE request_keys (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    hash BLOB NOT NULL,
    ids TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE INDEX request_keys_by_age ON request_keys (created);

-- A live job has one row in waiting, ready or leases.
CREATE TABLE waiting (
    id INTEGER PRIMARY KEY,
    lane_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER NOT NULL,
    deadline INTEGER,
    attempt INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    tries_left INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    hold INTEGER NOT NULL,
    parents INTEGER NOT NULL
);
CREATE INDEX waiting_for_time ON waiting (due) WHERE hold = 0 AND parents = 0;
CREATE INDEX waiting_deadline ON waiting (deadline) WHERE deadline IS NOT NULL;

CREATE TABLE ready (
    id INTEGER PRIMARY KEY,
    lane_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER NOT NULL,
    deadline INTEGER,
    attempt INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    tries_left INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    rank INTEGER NOT NULL
);
CREATE INDEX ready_order ON ready (lane_id, rank);
CREATE INDEX ready_deadline ON ready (deadline) WHERE deadline IS NOT NULL;

CREATE TABLE leases (
    id INTEGER PRIMARY KEY,
    lane_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER NOT NULL,
    deadline INTEGER,
    attempt INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    tries_left INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    nonce INTEGER NOT NULL,
    claimed INTEGER NOT NULL,
    check_at INTEGER NOT NULL,
    started INTEGER,
    cancel_asked INTEGER,
    progress TEXT
);
CREATE INDEX leases_of_worker ON leases (worker, check_at);
CREATE INDEX leases_to_stop ON leases (worker) WHERE cancel_asked IS NOT NULL;

-- A job's end, with its last attempt: from attempt_status on null where it ended without one.
CREATE TABLE history (
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
    claimed INTEGER,
    started INTEGER,
    exit_code INTEGER,
    error TEXT,
    result TEXT
);
-- State 5 is completed: what ended otherwise is looked for by itself.
CREATE INDEX history_not_completed ON history (state, id) WHERE state <> 5;

-- Attempts that did not end their job, or that a redrive has left behind.
CREATE TABLE attempts (
    id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    nonce INTEGER NOT NULL,
    due INTEGER NOT NULL,
    claimed INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    error TEXT,
    exit_code INTEGER,
    PRIMARY KEY (id, attempt)
) WITHOUT ROWID;

CREATE TABLE job_logs (
    id INTEGER NOT NULL,
    log_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    time INTEGER NOT NULL,
    level INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (id, log_id)
) WITHOUT ROWID;

-- How many jobs of a lane are shown under a status, kept up with every change.
CREATE TABLE counters (
    lane_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (lane_id, status)
) WITHOUT ROWID;

CREATE TABLE workers (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    queues TEXT NOT NULL,
    job_types TEXT NOT NULL,
    resources TEXT NOT NULL,
    labels TEXT NOT NULL,
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    until INTEGER NOT NULL,
    draining INTEGER NOT NULL
);

CREATE TABLE nodes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    until INTEGER NOT NULL,
    floor INTEGER NOT NULL
);
