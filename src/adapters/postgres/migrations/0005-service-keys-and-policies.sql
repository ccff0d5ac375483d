-- Several service keys of one user, each with a name and perhaps an end; what an operator decides for a user. All of it
-- has a neutral default, so that gateways of the release before go on beside it.

ALTER TABLE service_keys
  -- Names the key where its hash must not be shown. Keys of before get theirs in the next file: a default that differs
  -- from row to row would rewrite the table under this lock.
  ADD COLUMN id uuid,
  ADD COLUMN label text CHECK (char_length(label) <= 128),
  ADD COLUMN expires_at timestamptz,
  -- The UTC hour in which it was last presented.
  ADD COLUMN last_used_at timestamptz;
ALTER TABLE service_keys ALTER COLUMN id SET DEFAULT gen_random_uuid();

ALTER TABLE users
  ADD COLUMN disabled_at timestamptz,
  -- Null: none. A request may ask for more, never for less.
  ADD COLUMN residency text CHECK (residency IN ('india'));
