CREATE FUNCTION billing_test.hostile_texts()
RETURNS TABLE (text_name text, hostile_text text, sqlstate text)
LANGUAGE sql
AS $function$
    -- What a text parameter that takes free text must refuse, by the error that it must give.
    VALUES
    ('NULL', NULL, 'SB101'),
    ('an empty text', '', 'SB101'),
    ('blanks only', '   ', 'SB101'),
    ('ten megabytes', repeat('x', 10000000), 'SB101'),
    ('a line break', E'two\nlines', 'SB101'),
    ('an escape sequence', E'\x1b[31mred', 'SB101'),
    ('a card number', '4111111111111111', 'SB105'),
    ('a card number in groups', 'card 4111 1111 1111 1111', 'SB105');
$function$;

COMMENT ON FUNCTION billing_test.hostile_texts IS
'Texts that no parameter takes, with the SQLSTATE that refuses each.';
