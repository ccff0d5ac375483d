"""Hooks for schemathesis: every third chat request is one that can be answered, every third registration a new one.

What the document allows is seldom what a gateway with these users can serve: a model that exists, a message, no order to
use a provider of a random name. The other two thirds stay as they were generated. Of the generated fields one is kept, so
that each field is also seen in a request that nothing else spoils. An address can be registered once, and a generator likes
the same short ones.
"""

import uuid

import schemathesis

CHAT = "POST /v1/chat/completions"
REGISTRATION = "POST /v1/users"
EVERY = 3
MODES = ("gw/cheap", "gw/balanced", "gw/premium")
OURS = {"model", "messages"}

count = 0


@schemathesis.hook
def before_call(context, case, kwargs):
    global count
    if case.operation.label not in (CHAT, REGISTRATION):
        return
    count += 1
    if count % EVERY != 0:
        return
    if case.operation.label == REGISTRATION:
        case.body = {"email": f"{uuid.uuid4()}@example.com"}
        return
    turn = count // EVERY
    given = case.body if isinstance(case.body, dict) else {}
    names = sorted(name for name in given if isinstance(name, str) and name not in OURS)
    kept = {name: given[name] for name in names[turn % max(1, len(names)) :][:1]}
    message = {"role": "user", "content": f"Message {turn}."}
    case.body = {**kept, "model": MODES[turn % len(MODES)], "messages": [message]}
    case.headers = {
        name: value for name, value in (case.headers or {}).items() if not name.lower().startswith("x-")
    }
