CREATE OR REPLACE VIEW billing_api.invoice_line AS
SELECT
    l.invoice_id,
    l.customer_id,
    l.line_no,
    l.kind,
    l.description,
    l.amount,
    l.unit_amount,
    l.quantity,
    l.seconds_billed,
    l.seconds_total,
    l.period_start,
    l.period_end,
    l.price_id,
    l.at_most
FROM billing.invoice_line AS l
WHERE billing.in_customer_scope(l.customer_id);

COMMENT ON VIEW billing_api.invoice_line IS
'Lines of the invoices within the scope of the caller, each with what its amount was computed from.';
COMMENT ON COLUMN billing_api.invoice_line.invoice_id IS 'Invoice.';
COMMENT ON COLUMN billing_api.invoice_line.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_api.invoice_line.line_no IS 'Number within the invoice, from 1.';
COMMENT ON COLUMN billing_api.invoice_line.kind IS
'PERIOD (a full period), PRORATION (part of one), CREDIT (balances a negative net), CARRIED (from an earlier invoice) or MANUAL.';
COMMENT ON COLUMN billing_api.invoice_line.description IS 'Text for people.';
COMMENT ON COLUMN billing_api.invoice_line.amount IS
'Minor units, negative for a credit: floor(unit_amount x quantity x seconds_billed / seconds_total).';
COMMENT ON COLUMN billing_api.invoice_line.unit_amount IS 'Price per unit in minor units.';
COMMENT ON COLUMN billing_api.invoice_line.quantity IS 'Quantity.';
COMMENT ON COLUMN billing_api.invoice_line.seconds_billed IS
'Numerator of the proration in seconds; NULL = a full period.';
COMMENT ON COLUMN billing_api.invoice_line.seconds_total IS
'Denominator: length of the full period as priced, in seconds.';
COMMENT ON COLUMN billing_api.invoice_line.period_start IS 'Start of the time paid for.';
COMMENT ON COLUMN billing_api.invoice_line.period_end IS 'End of the time paid for, exclusive.';
COMMENT ON COLUMN billing_api.invoice_line.price_id IS 'Price version.';
COMMENT ON COLUMN billing_api.invoice_line.at_most IS
'Limit of a credit in minor units, where it was less than the formula gives: what had been paid for the period and not given back. NULL = none.';
