BEGIN;
SELECT plan(7);

CREATE FUNCTION pg_temp.as_definer()
RETURNS text
LANGUAGE sql
SECURITY DEFINER
AS $function$
    SELECT billing.caller_role() || ' ' || billing.actor() || ' ' || billing.is_operator();
$function$;
CREATE TEMPORARY TABLE told (role text, answer text);
GRANT INSERT ON told TO PUBLIC;
CREATE FUNCTION pg_temp.tell(p_role text)
RETURNS text
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM billing_test.run_as(p_role, format('INSERT INTO told VALUES (%L, pg_temp.as_definer())', p_role));
    RETURN (SELECT t.answer FROM told AS t WHERE t.role = p_role);
END;
$function$;

SELECT is(
    pg_temp.as_definer(), session_user || ' ' || session_user || ' true', 'without SET ROLE it is the login, and a superuser is an operator'
);
SELECT is(
    pg_temp.tell('billing_app'), 'billing_app billing_app false', 'with SET ROLE it is that role, also for a superuser'
);
SELECT is(
    pg_temp.tell('billing_operator'), 'billing_operator billing_operator true', 'the operator role is an operator'
);
CREATE ROLE jane_on_call IN ROLE billing_operator;
SELECT is(pg_temp.tell('jane_on_call'), 'jane_on_call jane_on_call true', 'so is a member of it');
CREATE ROLE joe_from_shop IN ROLE billing_app;
SELECT is(pg_temp.tell('joe_from_shop'), 'joe_from_shop joe_from_shop false', 'a member of another role is not');

SELECT set_config('billing.actor', 'jane@example.com', true) <> '';
SELECT is(billing.actor(), 'jane@example.com', 'the actor is whom the caller names');
SELECT set_config('billing.actor', repeat('x', 10000), true) <> '';
SELECT is(length(billing.actor()), 200, 'and no longer than a name');

SELECT * FROM finish();
ROLLBACK;
