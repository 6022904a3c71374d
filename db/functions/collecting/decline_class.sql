CREATE OR REPLACE FUNCTION billing.decline_class(
    p_adapter text,
    p_code text
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN coalesce(
    (SELECT d.class FROM billing.decline_code AS d WHERE d.adapter = p_adapter AND d.code = p_code),
    (SELECT d.class FROM billing.decline_code AS d WHERE d.adapter = '*' AND d.code = p_code),
    'SOFT'
);

COMMENT ON FUNCTION billing.decline_class IS
'SOFT, HARD or CUSTOMER for the decline code of an adapter; SOFT for a code that is not listed.';
