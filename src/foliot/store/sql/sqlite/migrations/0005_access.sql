-- Keys, sessions, namespaces, shared rates, the audit log.

-- `queues` and `job_types` are JSON.
CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    queues TEXT NOT NULL,
    job_types TEXT NOT NULL,
    hash BLOB NOT NULL,
    old_hash BLOB,
    old_until INTEGER NOT NULL,
    created INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires INTEGER,
    last_used INTEGER,
    revoked INTEGER
) WITHOUT ROWID;
CREATE INDEX api_keys_of_namespace ON api_keys (namespace, key_id);
CREATE UNIQUE INDEX api_keys_by_name ON api_keys (namespace, name) WHERE revoked IS NULL;

-- `caller` is JSON.
CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,
    until INTEGER NOT NULL,
    once INTEGER NOT NULL,
    key_id TEXT,
    caller TEXT NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_end ON sessions (until);
CREATE INDEX sessions_of_key ON sessions (key_id) WHERE key_id IS NOT NULL;

-- `quotas` is JSON.
CREATE TABLE namespaces (
    name TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    version INTEGER NOT NULL,
    quotas TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO namespaces (name, created, version, quotas)
SELECT name, CAST(strftime('%s', 'now') AS INTEGER) * 1000000, 1, '{}'
FROM (SELECT 'default' AS name UNION SELECT namespace FROM lanes UNION SELECT namespace FROM schedules);

-- `next_beat` is in nanoseconds.
CREATE TABLE meters (
    name TEXT PRIMARY KEY,
    next_beat INTEGER NOT NULL
) WITHOUT ROWID;

-- Entries are only added: not even REPLACE, which fires no trigger for what it takes away, gets past.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    actor TEXT NOT NULL,
    key_id TEXT,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    source TEXT NOT NULL,
    request_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE INDEX audit_of_namespace ON audit (namespace, seq);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are only added, never changed or taken away');
END;
CREATE TRIGGER audit_is_not_taken_away BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are only added, never changed or taken away');
END;
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq) BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are only added, never changed or taken away');
END;
