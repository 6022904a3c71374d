CREATE FUNCTION billing_test.injection()
RETURNS text
LANGUAGE sql
IMMUTABLE
RETURN $$'); DROP TABLE billing.customer CASCADE; --"$$;

COMMENT ON FUNCTION billing_test.injection IS 'SQL that would do harm where a text is pasted into a statement.';
