-- The roles of the engine. Run this before the first migration, in the database that is to be migrated:
-- billing migrate does it, and for pgmigrate it is one call of psql -f.
--
-- Harmless to run again, also by a login that may create nothing, once everything is there. Two runs at the same time,
-- on two databases of one server, make each role once.

DO $roles$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY[
        'billing_owner',    -- owns everything
        'billing_app',      -- calls billing_api
        'billing_worker',   -- calls billing_worker and drives the queue
        'billing_relay',    -- publishes the outbox
        'billing_http',     -- the HTTP door: finds out who calls, stores webhooks
        'billing_operator', -- runbook actions
        'billing_readonly'  -- looks
    ] LOOP
        -- Tested first: CREATE ROLE refuses a login without CREATEROLE before it looks whether the role is there.
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = v_role);
        BEGIN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                RAISE DEBUG 'role % came from another run', v_role;
        END;
    END LOOP;
END;
$roles$;

-- Who migrates must be able to become the owner: being the creator of a role does not suffice since PostgreSQL 16.
DO $membership$
DECLARE
    c_may_become CONSTANT text :=
        CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    IF NOT pg_catalog.pg_has_role(current_user, 'billing_owner', c_may_become) THEN
        EXECUTE pg_catalog.format('GRANT billing_owner TO %I', current_user);
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        RAISE DEBUG 'the membership came from another run';
END;
$membership$;

-- The owner makes schemas in this database, and pgmigrate's schema_version in schema public.
DO $privileges$
BEGIN
    IF NOT pg_catalog.has_database_privilege('billing_owner', current_database(), 'CREATE') THEN
        EXECUTE pg_catalog.format('GRANT CREATE ON DATABASE %I TO billing_owner', current_database());
    END IF;
    IF pg_catalog.to_regnamespace('public') IS NOT NULL
        AND NOT pg_catalog.has_schema_privilege('billing_owner', 'public', 'CREATE')
    THEN
        GRANT USAGE, CREATE ON SCHEMA public TO billing_owner;
    END IF;
END;
$privileges$;
