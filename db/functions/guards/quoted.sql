CREATE OR REPLACE FUNCTION billing.quoted(
    p_text text
)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Errors are logged by callers, so what must not be stored must not be repeated either.
    SELECT CASE
        WHEN p_text IS NULL THEN 'NULL'
        WHEN billing.looks_like_card_number(left(p_text, 64)) THEN '(what looks like a card number)'
        ELSE to_json(left(p_text, 64))::text
    END;
$function$;

COMMENT ON FUNCTION billing.quoted IS
'A text of the caller as an error may repeat it: quoted, escaped, cut to 64 characters, and no card number. The one way for a text that no guard has passed.';
