-- What is believed: by epoch, by rank, and never against an end, unless money has moved.
BEGIN;
SELECT plan(4);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE attempt AS SELECT billing_test.start('2027-05-01T00:00:00Z') AS id;

CREATE FUNCTION pg_temp.after(p_state text, p_outcome text, p_source text, p_epoch_off integer)
RETURNS text
LANGUAGE plpgsql
AS $function$
-- Brings the attempt into a state, reports the outcome, says verdict and state, and takes everything back.
DECLARE
    v_id bigint := (SELECT a.id FROM attempt AS a);
    v_at timestamptz := '2027-05-01T00:01:00Z';
    v_answer text;
BEGIN
    IF p_state = 'ABANDONED' THEN
        PERFORM billing_api.cancel_subscription(s.subscription_id, p_as_of => v_at) FROM billing.subscription AS s;
        PERFORM billing_test.report(v_id, 'NOT_ATTEMPTED', v_at);
    ELSIF p_state <> 'STARTED' THEN
        PERFORM billing_test.report(
            v_id, p_state, v_at, CASE p_state WHEN 'DECLINED' THEN 'do_not_honor' END,
            p_action_expires_at => CASE p_state WHEN 'REQUIRES_ACTION' THEN v_at + interval '1 day' END
        );
    END IF;
    IF (SELECT a.status FROM billing.payment_attempt AS a WHERE a.attempt_id = v_id) <> p_state THEN
        RAISE EXCEPTION 'the fixture did not reach %', p_state;
    END IF;
    SELECT r.verdict || ' ' || r.attempt_status INTO STRICT v_answer
    FROM billing_test.report(
        v_id, p_outcome, v_at + interval '1 minute', CASE p_outcome WHEN 'DECLINED' THEN 'do_not_honor' END, p_source,
        p_epoch_off => p_epoch_off,
        p_action_expires_at => CASE p_outcome WHEN 'REQUIRES_ACTION' THEN v_at + interval '1 day' END
    ) AS r;
    RAISE EXCEPTION USING ERRCODE = 'TT000', MESSAGE = v_answer;
EXCEPTION WHEN SQLSTATE 'TT000' THEN
    RETURN sqlerrm;
END;
$function$;

CREATE TEMPORARY TABLE expected (
    state text, succeeded text, declined text, requires_action text, processing text, not_attempted text, unknown text, not_found text
);
INSERT INTO expected VALUES
('STARTED', 'APPLIED SUCCEEDED', 'APPLIED DECLINED', 'APPLIED REQUIRES_ACTION', 'APPLIED PROCESSING', 'APPLIED STARTED', 'APPLIED UNKNOWN',
    'APPLIED STARTED'),
('UNKNOWN', 'APPLIED SUCCEEDED', 'APPLIED DECLINED', 'APPLIED REQUIRES_ACTION', 'APPLIED PROCESSING', 'APPLIED UNKNOWN', 'APPLIED UNKNOWN',
    'APPLIED UNKNOWN'),
('REQUIRES_ACTION', 'APPLIED SUCCEEDED', 'APPLIED DECLINED', 'APPLIED REQUIRES_ACTION', 'APPLIED PROCESSING', 'APPLIED REQUIRES_ACTION',
    'STALE REQUIRES_ACTION', 'APPLIED REQUIRES_ACTION'),
('PROCESSING', 'APPLIED SUCCEEDED', 'APPLIED DECLINED', 'STALE PROCESSING', 'APPLIED PROCESSING', 'APPLIED PROCESSING',
    'STALE PROCESSING', 'APPLIED PROCESSING'),
('DECLINED', 'APPLIED SUCCEEDED', 'DUPLICATE DECLINED', 'STALE DECLINED', 'STALE DECLINED', 'DUPLICATE DECLINED', 'STALE DECLINED',
    'DUPLICATE DECLINED'),
('SUCCEEDED', 'DUPLICATE SUCCEEDED', 'STALE SUCCEEDED', 'STALE SUCCEEDED', 'STALE SUCCEEDED', 'DUPLICATE SUCCEEDED', 'STALE SUCCEEDED',
    'DUPLICATE SUCCEEDED'),
('ABANDONED', 'APPLIED SUCCEEDED', 'STALE ABANDONED', 'STALE ABANDONED', 'STALE ABANDONED', 'DUPLICATE ABANDONED', 'STALE ABANDONED',
    'DUPLICATE ABANDONED');
CREATE TEMPORARY VIEW expectation AS
SELECT e.state, o.outcome, o.answer, CASE o.outcome WHEN 'NOT_FOUND' THEN 'LOOKUP' ELSE 'SEND' END AS source
FROM expected AS e
CROSS JOIN LATERAL (VALUES
    ('SUCCEEDED', e.succeeded), ('DECLINED', e.declined), ('REQUIRES_ACTION', e.requires_action), ('PROCESSING', e.processing),
    ('NOT_ATTEMPTED', e.not_attempted), ('UNKNOWN', e.unknown), ('NOT_FOUND', e.not_found)
) AS o (outcome, answer);

SELECT is_empty(
    $$SELECT x.state, x.outcome, x.answer AS expected, r.answer AS actual
      FROM expectation AS x CROSS JOIN LATERAL pg_temp.after(x.state, x.outcome, x.source, 0) AS r (answer)
      WHERE r.answer <> x.answer$$,
    'under the epoch of the present claim the stronger report counts, an equal one is a duplicate or repeats, a weaker one is stale'
);
SELECT is_empty(
    $$SELECT x.state, x.outcome, r.answer AS actual
      FROM expectation AS x CROSS JOIN LATERAL pg_temp.after(x.state, x.outcome, x.source, -1) AS r (answer)
      WHERE r.answer <> CASE x.outcome WHEN 'SUCCEEDED' THEN x.answer ELSE 'STALE ' || x.state END$$,
    'under an older epoch everything is stale but a success'
);
SELECT is_empty(
    $$SELECT x.state, x.outcome, x.answer AS expected, r.answer AS actual
      FROM expectation AS x CROSS JOIN LATERAL pg_temp.after(x.state, x.outcome, 'WEBHOOK', 0) AS r (answer)
      WHERE x.outcome IN ('SUCCEEDED', 'DECLINED') AND r.answer <> x.answer$$,
    'a webhook carries no epoch and is judged by rank'
);
SELECT is_empty(
    $$SELECT x.state, x.outcome, r.answer AS actual
      FROM expectation AS x CROSS JOIN LATERAL pg_temp.after(x.state, x.outcome, 'LOOKUP', 0) AS r (answer)
      WHERE x.outcome <> 'NOT_ATTEMPTED'
        AND r.answer <> CASE
            WHEN x.outcome = 'UNKNOWN' AND x.state IN ('DECLINED', 'SUCCEEDED', 'ABANDONED') THEN 'DUPLICATE ' || x.state
            WHEN x.outcome = 'UNKNOWN' THEN 'APPLIED ' || x.state
            ELSE x.answer
        END$$,
    'a look-up is judged like the answer to a send, but one that errs says nothing'
);

SELECT * FROM finish();
ROLLBACK;
