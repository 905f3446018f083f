-- Queues with rules of their own, what is held, and lanes in which ready jobs stand in their queue's order.

-- `rules` is JSON, empty where they are the default; `special` tells whether they are not, or the queue is paused.
-- `next_beat` is in nanoseconds.
CREATE TABLE queues (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    ordered INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    special INTEGER NOT NULL,
    next_beat INTEGER NOT NULL,
    fair_time INTEGER NOT NULL,
    rules TEXT NOT NULL,
    UNIQUE (namespace, name)
);
CREATE INDEX queues_special ON queues (id) WHERE special = 1;
INSERT INTO queues (namespace, name, version, ordered, paused, special, next_beat, fair_time, rules)
SELECT DISTINCT namespace, queue, 1, 1, 0, 0, 0, 0, '' FROM lanes ORDER BY namespace, queue;

-- `ordering` is part of a lane's name: empty for a job's own lane. `base` is that lane, for those that have one.
CREATE TABLE lanes_of_queues (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    job_type TEXT NOT NULL,
    needs TEXT NOT NULL,
    ordering TEXT NOT NULL,
    queue_id INTEGER NOT NULL,
    base INTEGER,
    UNIQUE (namespace, queue, job_type, needs, ordering)
);
INSERT INTO lanes_of_queues (id, namespace, queue, job_type, needs, ordering, queue_id)
SELECT l.id, l.namespace, l.queue, l.job_type, l.needs, '', q.id
FROM lanes AS l JOIN queues AS q ON q.namespace = l.namespace AND q.name = l.queue;
DROP TABLE lanes;
ALTER TABLE lanes_of_queues RENAME TO lanes;
CREATE INDEX lanes_of_queue ON lanes (queue_id);

-- Where the time of a fair key stands.
CREATE TABLE shares (
    queue_id INTEGER NOT NULL,
    fair_key TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (queue_id, fair_key)
) WITHOUT ROWID;

-- Job types of which nothing starts.
CREATE TABLE held_types (
    namespace TEXT NOT NULL,
    job_type TEXT NOT NULL,
    PRIMARY KEY (namespace, job_type)
) WITHOUT ROWID;

-- Set where the lease counts for its queue's max_concurrency.
ALTER TABLE leases ADD COLUMN queue_id INTEGER;
CREATE INDEX leases_of_queue ON leases (queue_id) WHERE queue_id IS NOT NULL;
