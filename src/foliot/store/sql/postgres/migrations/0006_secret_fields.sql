-- Which parts of a job's payload are written and never shown; null for none, as most have.
alter table jobs add column secret_fields text[];
