CREATE OR REPLACE FUNCTION billing.require_text(
    p_value text,
    p_name text,
    p_max_length integer
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, blank, too long or with control characters; SB105 holds a card number
-- Idempotent: yes
-- Length first, so that ten megabytes cost nothing. The text itself is never repeated in an error.
BEGIN
    IF p_value IS NULL OR btrim(left(p_value, p_max_length)) = '' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must not be NULL or blank', p_name);
    END IF;
    IF length(p_value) > p_max_length THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s is longer than %s characters', p_name, p_max_length);
    END IF;
    IF p_value ~ '[\u0001-\u001F\u007F-\u009F]' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s contains control characters', p_name);
    END IF;
    IF billing.looks_like_card_number(p_value) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB105',
            MESSAGE = format('%s looks like a card number', p_name),
            HINT = 'Card numbers are never stored. Send a token of the gateway; where it is a number of your own, put a letter directly before its digits.';
    END IF;
    RETURN p_value;
END;
$function$;

COMMENT ON FUNCTION billing.require_text IS
'Returns a text that is neither NULL, blank, too long nor dangerous, or raises SB101; SB105 where it holds a card number.';
