CREATE OR REPLACE FUNCTION billing.may_be_our_key(
    p_reference text
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN coalesce(p_reference, '') !~ '^[a-z0-9]{4,16}-inv-[0-9]+-(try|refund)-[0-9]+$'
    OR starts_with(p_reference, (SELECT d.key_prefix FROM billing.database_identity AS d) || '-');

COMMENT ON FUNCTION billing.may_be_our_key IS
'False where a reference at a gateway is a key of another database of this program, by its prefix.';
