-- Classes of decline codes. "*" holds for every adapter; a code that is not listed is SOFT.
INSERT INTO billing.decline_code (adapter, code, class) VALUES
('*', 'insufficient_funds', 'SOFT'),
('*', 'do_not_honor', 'SOFT'),
('*', 'generic_decline', 'SOFT'),
('*', 'call_issuer', 'SOFT'),
('*', 'try_again_later', 'SOFT'),
('*', 'processing_error', 'SOFT'),
('*', 'issuer_not_available', 'SOFT'),
('*', 'action_expired', 'SOFT'),
('*', 'no_payment_method', 'CUSTOMER'),
('*', 'lost_card', 'HARD'),
('*', 'stolen_card', 'HARD'),
('*', 'pickup_card', 'HARD'),
('*', 'fraudulent', 'HARD'),
('*', 'restricted_card', 'HARD'),
('*', 'revocation_of_authorization', 'HARD'),
('*', 'revocation_of_all_authorizations', 'HARD'),
('*', 'invalid_mandate', 'HARD'),
('*', 'invalid_number', 'HARD'),
('*', 'invalid_account', 'HARD'),
('*', 'unknown_token', 'HARD'),
('*', 'authentication_required', 'CUSTOMER'),
('*', 'expired_card', 'CUSTOMER'),
('*', 'incorrect_cvc', 'CUSTOMER')
ON CONFLICT (adapter, code) DO UPDATE SET class = excluded.class
WHERE billing.decline_code.class <> excluded.class;
