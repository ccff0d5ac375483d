-- Who may call, and with which provider keys. Service keys are known by their SHA-256 only; provider
-- secrets lie sealed (AES-256-GCM, bound to record id, user id and provider).

CREATE TABLE users (
  id uuid PRIMARY KEY,
  email text NOT NULL,
  -- Trimmed and case-folded by the gateway; the address is unique in this form.
  email_folded text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE service_keys (
  key_hash bytea PRIMARY KEY CHECK (octet_length(key_hash) = 32),
  user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX service_keys_by_user ON service_keys (user_id);

CREATE TABLE provider_keys (
  -- Made by the gateway before sealing, because the ciphertext is bound to it.
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider text NOT NULL,
  declared_region text,
  base_url text,
  label text CHECK (char_length(label) <= 128),
  master_key_id text NOT NULL,
  nonce bytea NOT NULL,
  ciphertext bytea NOT NULL,
  -- clock_timestamp, not now: keys of one transaction would otherwise tie.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((provider = 'self_hosted') = (base_url IS NOT NULL)),
  CHECK ((provider = 'self_hosted') = (declared_region IS NOT NULL))
);
CREATE UNIQUE INDEX provider_keys_one_commercial ON provider_keys (user_id, provider)
  WHERE provider <> 'self_hosted';
CREATE INDEX provider_keys_by_user ON provider_keys (user_id, created_at, id);
