-- Where an operator makes a user an exception from the limits of the tables: {"streams": 2, "requests_per_minute": null}.
-- A name that is missing is as the tables say, null is no limit. A column that is null costs no row anything.

ALTER TABLE users ADD COLUMN limits jsonb;
