-- Readers do not wait for it: it locks rows, not the table.
UPDATE service_keys SET id = gen_random_uuid() WHERE id IS NULL;
