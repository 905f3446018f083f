-- Jobs that depend on jobs, concurrency keys, unique keys, and what a lane's jobs need. Numbers of ties, ends and
-- states are those of domain.job and domain.graph.

-- `needs` is part of a lane's name: empty for a slot and nothing else.
CREATE TABLE lanes_with_needs (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    job_type TEXT NOT NULL,
    needs TEXT NOT NULL,
    UNIQUE (namespace, queue, job_type, needs)
);
INSERT INTO lanes_with_needs (id, namespace, queue, job_type, needs)
SELECT id, namespace, queue, job_type, '' FROM lanes;
DROP TABLE lanes;
ALTER TABLE lanes_with_needs RENAME TO lanes;

-- Written anew, so that payloads stay behind all other columns: what lies behind a long one is slow to read.
CREATE TABLE jobs_with_keys (
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
    limit_key TEXT,
    unique_key TEXT,
    fair_key TEXT,
    payload TEXT NOT NULL
);
INSERT INTO jobs_with_keys (id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner,
    schedule_id, payload)
SELECT id, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id, payload
FROM jobs ORDER BY id;
DROP TABLE jobs;
ALTER TABLE jobs_with_keys RENAME TO jobs;
CREATE INDEX jobs_of_schedule ON jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;

-- A job that is ready or leased holds a token of its concurrency key; with `for_key` it only waits for one.
ALTER TABLE waiting ADD COLUMN limit_id INTEGER;
ALTER TABLE waiting ADD COLUMN ties INTEGER NOT NULL DEFAULT 0;
ALTER TABLE waiting ADD COLUMN for_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ready ADD COLUMN limit_id INTEGER;
ALTER TABLE ready ADD COLUMN ties INTEGER NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN limit_id INTEGER;
ALTER TABLE leases ADD COLUMN ties INTEGER NOT NULL DEFAULT 0;
DROP INDEX waiting_for_time;
CREATE INDEX waiting_for_time ON waiting (due) WHERE hold = 0 AND parents = 0 AND for_key = 0;
CREATE INDEX waiting_for_key ON waiting (limit_id, priority DESC, due) WHERE for_key = 1;
CREATE INDEX waiting_for_key_by_age ON waiting (id) WHERE for_key = 1;
CREATE INDEX ready_of_limit ON ready (limit_id) WHERE limit_id IS NOT NULL;
CREATE INDEX leases_of_limit ON leases (limit_id) WHERE limit_id IS NOT NULL;

-- Concurrency keys: `most` at once.
CREATE TABLE limits (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    most INTEGER NOT NULL,
    UNIQUE (namespace, key)
);

-- Which job has a unique key; it bars others while it is waiting or ready.
CREATE TABLE unique_keys (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

-- `child` starts once `parent` has ended as `on_end` says. Those not done are counted in the child's row.
CREATE TABLE edges (
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    on_end INTEGER NOT NULL,
    done INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX edges_of_child ON edges (child);
CREATE INDEX edges_open ON edges (parent, child) WHERE done = 0;

-- Ended parents whose end is not yet carried on to all children.
CREATE TABLE releases (
    parent INTEGER PRIMARY KEY,
    state INTEGER NOT NULL
);
