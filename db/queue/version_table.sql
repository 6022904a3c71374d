-- What the job queue's own schema has had applied to it, by the names of the queue's own migration files. The queue
-- keeps no record of that itself.
CREATE TABLE procrastinate.applied_migration (
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    CONSTRAINT applied_migration_pkey PRIMARY KEY (name)
);

COMMENT ON TABLE procrastinate.applied_migration IS
'Which of the job queue''s own migration files this schema contains. Written by billing migrate.';
COMMENT ON COLUMN procrastinate.applied_migration.name IS 'Name of the file in the installed package, for example 03.04.00_01_pre_add_retry_failed_job_procedure.sql.';
COMMENT ON COLUMN procrastinate.applied_migration.applied_at IS 'When, by the wall clock.';
