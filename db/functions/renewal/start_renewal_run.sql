CREATE OR REPLACE FUNCTION billing_worker.start_renewal_run(
    p_worker text,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     billing_run
-- Raises:     SB101 no worker, SB104 p_as_of
-- Idempotent: no, but a run that does nothing is removed when it ends
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_run_id bigint;
BEGIN
    PERFORM billing.require_text(p_worker, 'p_worker', 200);
    INSERT INTO billing.billing_run (as_of, worker, due_at_start)
    SELECT v_as_of, p_worker, count(*)
    FROM (
        SELECT 1
        FROM billing.subscription AS s
        WHERE date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00') <= v_as_of
          AND s.next_renewal_at <= v_as_of
        LIMIT 100000
    ) AS due
    RETURNING billing_run_id INTO v_run_id;
    RETURN v_run_id;
END;
$function$;

COMMENT ON FUNCTION billing_worker.start_renewal_run IS
'Opens a renewal run and returns its id, which renew_due takes. A run advances a subscription by at most three periods.';
