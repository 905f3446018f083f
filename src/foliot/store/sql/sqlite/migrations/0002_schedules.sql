-- Schedules, the ledger of their due times, and which of their runs are under way. Verdicts are the numbers of
-- domain.schedule.

-- `plan` and `definition` are JSON.
CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    next_due INTEGER,
    runs INTEGER NOT NULL,
    backfill_limit INTEGER NOT NULL,
    version INTEGER NOT NULL,
    edition INTEGER NOT NULL,
    plan TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (namespace, name)
);
CREATE INDEX schedules_by_age ON schedules (namespace, id);
CREATE INDEX schedules_due ON schedules (next_due) WHERE paused = 0 AND next_due IS NOT NULL;

-- A due time, or `count` of them from `due` to `until`. Without a verdict it waits.
CREATE TABLE ledger (
    schedule INTEGER NOT NULL,
    due INTEGER NOT NULL,
    until INTEGER NOT NULL,
    count INTEGER NOT NULL,
    exact INTEGER NOT NULL,
    verdict INTEGER,
    promised INTEGER NOT NULL,
    reason TEXT,
    decided INTEGER NOT NULL,
    PRIMARY KEY (schedule, due, until)
) WITHOUT ROWID;
-- Verdict 4 is backfilled: those wait behind the others.
CREATE INDEX ledger_waiting ON ledger (schedule, (promised = 4), due) WHERE verdict IS NULL;
CREATE INDEX ledger_by_age ON ledger (decided) WHERE verdict IS NOT NULL;

-- The schedules' jobs that have not ended.
CREATE TABLE open_runs (
    id INTEGER PRIMARY KEY,
    schedule INTEGER NOT NULL,
    backfill INTEGER NOT NULL
);
CREATE INDEX open_runs_of_schedule ON open_runs (schedule, backfill, id);
