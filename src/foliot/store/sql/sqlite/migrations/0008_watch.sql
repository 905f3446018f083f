-- What those who watch keep: definitions of users, incidents, deliveries, who is on watch, how late jobs were. `body` and
-- `counts` are JSON.

CREATE TABLE definitions (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    created INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;

CREATE TABLE posts (
    name TEXT PRIMARY KEY,
    node INTEGER NOT NULL,
    until INTEGER NOT NULL,
    position TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE incidents (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    opened INTEGER NOT NULL,
    resolved INTEGER,
    notify_at INTEGER,
    version INTEGER NOT NULL
);
CREATE UNIQUE INDEX incidents_open ON incidents (namespace, rule, subject) WHERE resolved IS NULL;
CREATE INDEX incidents_to_notify ON incidents (notify_at) WHERE notify_at IS NOT NULL;
CREATE INDEX incidents_resolved ON incidents (resolved) WHERE resolved IS NOT NULL;
CREATE INDEX incidents_of_namespace ON incidents (namespace, id);

CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    webhook TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    body TEXT NOT NULL,
    created INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_try INTEGER,
    last_status INTEGER,
    last_error TEXT,
    changed INTEGER NOT NULL
);
CREATE INDEX deliveries_to_try ON deliveries (next_try) WHERE next_try IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (changed) WHERE state <> 'pending';
CREATE INDEX deliveries_of_webhook ON deliveries (namespace, webhook, state, id);

CREATE TABLE lateness (
    minute INTEGER NOT NULL,
    node INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    job_type TEXT NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (namespace, minute, queue, job_type, node)
) WITHOUT ROWID;
CREATE INDEX lateness_by_age ON lateness (minute);

-- The lanes in which jobs of a lane may stand in order, and what of a lane waits for a token, by due time.
CREATE INDEX lanes_of_base ON lanes (base) WHERE base IS NOT NULL;
CREATE INDEX waiting_for_key_by_due ON waiting (lane_id, due) WHERE for_key = 1;
