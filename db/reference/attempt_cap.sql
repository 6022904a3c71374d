-- Caps of the card networks. A brand that is not listed gets the strictest.
INSERT INTO billing.attempt_cap (brand, span, most) VALUES
('visa', '720:00', 20),
('mastercard', '24:00', 10),
('mastercard', '720:00', 35),
('*', '24:00', 10),
('*', '720:00', 20)
ON CONFLICT (brand, span) DO UPDATE SET most = excluded.most
WHERE billing.attempt_cap.most <> excluded.most;
