BEGIN;
SELECT plan(17);

-- Test numbers that issuers publish.
SELECT ok(billing.looks_like_card_number(t.text), t.text || ' holds a card number')
FROM (
    VALUES
    ('4242424242424242'), ('5555555555554444'), ('378282246310005'), ('tok_4242424242424242'), ('4242 4242 4242 4242'),
    ('4242-4242-4242-4242'), ('card: 4242424242424242.'), ('a1 4242 4242 4242 4242 b2')
) AS t (text);

-- 1242424242424243 has the sum and no issuer, 4242424242424241 an issuer and not the sum.
SELECT ok(NOT billing.looks_like_card_number(t.text), t.text || ' holds none')
FROM (
    VALUES
    ('4242424242424241'), ('1242424242424243'), ('pay_0a4242424242424242c3'), ('pay_4242424242424242af19'),
    ('tok_9f4242424242424242'), ('pi_3Mtw4242424242424242Z'), ('42424242-4242-4242-8242-424242424242'), ('')
) AS t (text);

SELECT is(billing.looks_like_card_number(NULL), false, 'nothing holds none');

SELECT * FROM finish();
ROLLBACK;
