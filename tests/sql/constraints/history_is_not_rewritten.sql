-- What is history cannot be deleted, emptied or rewritten, whoever tries, not even by the owner of the tables.
BEGIN;
SELECT plan(38);

SELECT billing_test.renewal_invoice('a');
SELECT billing_test.start('2027-05-01T00:00:00Z');
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01T00:00:00Z', 'do_not_honor') FROM billing.payment_attempt AS a
    WHERE a.status = 'STARTED';
SELECT billing_api.grant_credit(c.customer_id, 500, 'USD', 'x', 'k', '2027-05-01T00:00:00Z') FROM billing.customer AS c;

CREATE FUNCTION pg_temp.refused(p_statement text, p_sqlstate text, p_description text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT tap.throws_ok(format('SELECT billing_test.run_as(''billing_owner'', %L)', p_statement), p_sqlstate::char(5), NULL,
        p_description);
$function$;

CREATE TEMPORARY TABLE history (name text);
INSERT INTO history VALUES
('price'), ('dunning_policy'), ('subscription'), ('subscription_event'), ('invoice'), ('invoice_line'), ('credit_entry'),
('payment_attempt'), ('payment_report'), ('outbox_event');
SELECT pg_temp.refused(format('DELETE FROM billing.%I', t.name), 'SB901', format('rows of %s are not deleted', t.name))
FROM history AS t;
SELECT pg_temp.refused(format('TRUNCATE billing.%I CASCADE', t.name), 'SB901', format('%s is not emptied', t.name))
FROM history AS t;

SELECT pg_temp.refused(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ('UPDATE billing.price SET amount = 1', 'SB901', 'a price is what it was'),
    ('UPDATE billing.dunning_policy SET jitter_minutes = 1', 'SB901', 'so is a dunning policy'),
    ('UPDATE billing.subscription_event SET detail = ''{}''', 'SB901', 'the log is not rewritten'),
    ('UPDATE billing.invoice_line SET amount = 1', 'SB901', 'nor are lines'),
    ('UPDATE billing.credit_entry SET amount = 1', 'SB901', 'nor is the ledger of credit'),
    ('UPDATE billing.payment_report SET verdict = ''STALE''', 'SB901', 'nor what gateways said'),
    ('UPDATE billing.invoice SET total = 1', 'SB901', 'an issued total stays'),
    ('UPDATE billing.invoice SET currency = ''EUR''', 'SB901', 'and its currency'),
    ('UPDATE billing.invoice SET amount_paid = amount_paid - 1, status = status WHERE status = ''PAID''', 'SB901',
        'what was paid stays paid'),
    ('UPDATE billing.invoice SET credit_applied = 1, amount_paid = amount_paid - 1 WHERE status = ''PAID''', 'SB901',
        'and by what it was paid'),
    ('UPDATE billing.invoice SET status = ''OPEN'', paid_at = NULL WHERE status = ''PAID''', 'SB307', 'PAID is final'),
    ('UPDATE billing.invoice SET status = ''VOID'', paid_at = NULL, voided_at = now() WHERE status = ''PAID''', 'SB307',
        'it is not voided'),
    ('UPDATE billing.payment_attempt SET amount = 1', 'SB901', 'what was sent stays what was sent'),
    ('UPDATE billing.payment_attempt SET payment_method_token = ''other''', 'SB901', 'and with what'),
    ('UPDATE billing.payment_attempt SET status = ''STARTED'', ended_at = NULL WHERE status = ''DECLINED''', 'SB901',
        'an ended attempt stays ended'),
    ('UPDATE billing.subscription SET quantity = 2', 'SB901', 'a subscription changes with its version'),
    ('UPDATE billing.subscription SET version = version + 1, event_seq = event_seq - 1', 'SB901', 'and its numbers never go back'),
    ('UPDATE billing.subscription
        SET version = version + 1, status = ''TRIALING'', past_due_since = NULL, next_renewal_at = current_period_end', 'SB303',
        'and takes no way that is not in the table')
) AS s (statement, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
