-- What a row knows beyond its sums, and how a provider key was sealed.

ALTER TABLE request_logs
  -- Which of the caller's keys served; null where none did, or the row came from the cache.
  ADD COLUMN key_id uuid,
  -- Whether the counts are all that the vendor states (complete), what it stated before a cut (partial), or none.
  ADD COLUMN usage_basis text CHECK (usage_basis IN ('complete', 'partial', 'none'));

-- 1: bound to record, user and provider; 2: to base_url and declared_region as well.
ALTER TABLE provider_keys ADD COLUMN seal_version smallint NOT NULL DEFAULT 1;
