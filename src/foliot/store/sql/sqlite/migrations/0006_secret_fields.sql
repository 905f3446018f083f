-- Which parts of a job's payload are written and never shown, as a JSON array; null for none, as most have.
ALTER TABLE jobs ADD COLUMN secret_fields TEXT;
