-- What explains a row to its owner, and the ways in which it is looked for.

ALTER TABLE request_logs
  -- The tier in its order: [{"provider": "openai", "model": "gpt-6", "fate": "tried"}]; null for an override.
  ADD COLUMN candidates jsonb,
  -- The price row and its rates, dollars per million tokens; null where no answer was priced.
  ADD COLUMN price jsonb,
  -- {"result": "hit" or "miss"}, a hit with the request that had made the answer; null where none was looked for.
  ADD COLUMN cache jsonb;

CREATE INDEX request_logs_by_id ON request_logs (id);
-- Clients may repeat an id: a page of its rows is read in order, however many there are.
CREATE INDEX request_logs_by_request ON request_logs (user_id, request_id, created_at DESC, id DESC);
