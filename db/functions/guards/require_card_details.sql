CREATE OR REPLACE FUNCTION billing.require_card_details(
    p_brand text,
    p_last4 text,
    p_exp_month integer,
    p_exp_year integer,
    p_fingerprint text
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 malformed, SB105 a card number
-- Idempotent: yes
BEGIN
    IF p_brand IS NOT NULL THEN
        PERFORM billing.require_text(p_brand, 'p_brand', 50);
    END IF;
    IF p_fingerprint IS NOT NULL THEN
        PERFORM billing.require_text(p_fingerprint, 'p_fingerprint', 255);
    END IF;
    IF p_last4 !~ '^[0-9]{4}$' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_last4 must be four digits';
    END IF;
    IF (p_exp_month IS NULL) <> (p_exp_year IS NULL) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_exp_month and p_exp_year go together';
    END IF;
    IF p_exp_month IS NOT NULL THEN
        PERFORM billing.require_integer(p_exp_month, 'p_exp_month', 1, 12);
        PERFORM billing.require_integer(p_exp_year, 'p_exp_year', 2000, 2100);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_card_details IS
'Checks what is stored of a card for display, each part optional, or raises SB101.';
