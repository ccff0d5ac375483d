"""Drives the official OpenAI client for Python against the gateway and prints what it saw as JSON."""

import json
import os

import openai

client = openai.OpenAI(api_key=os.environ["GATEWAY_KEY"], base_url=os.environ["GATEWAY_URL"] + "/v1", max_retries=0)
question = {"model": "gw/balanced", "messages": [{"role": "user", "content": "Say hello."}]}
tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
seen = {}


def marked(marker):
    return {"model": "gw/balanced", "messages": [{"role": "user", "content": marker}]}


def failure(call):
    try:
        call()
    except openai.APIError as error:
        return {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "type": error.type,
            "code": error.code,
            "param": error.param,
            "message": error.message,
            "request_id": getattr(error, "request_id", None),
        }
    return None


completion = client.chat.completions.create(**question)
seen["content"] = completion.choices[0].message.content
seen["total_tokens"] = completion.usage.total_tokens
seen["gateway"] = completion.model_extra["gateway"]
seen["request_id"] = completion._request_id
seen["header"] = client.chat.completions.with_raw_response.create(**question).headers.get("x-request-id")

parts = []
blocks = []
usage = None
for chunk in client.chat.completions.create(**question, stream=True, stream_options={"include_usage": True}):
    if chunk.usage:
        usage = chunk.usage.total_tokens
    for choice in chunk.choices:
        parts.append(choice.delta.content or "")
        if (choice.delta.model_extra or {}).get("gateway"):
            blocks.append(choice.delta.model_extra["gateway"])
seen["streamed"] = "".join(parts)
seen["streamed_usage"] = usage
seen["blocks"] = blocks

with client.chat.completions.stream(**question) as stream:
    for _event in stream:
        pass
    final = stream.get_final_completion()
message = final.choices[0].message
seen["assembled"] = message.content
seen["assembled_provider"] = (message.model_extra or {}).get("gateway", {}).get("provider")

replay = question["messages"] + [message.model_dump(), {"role": "user", "content": "Again."}]
seen["replayed"] = client.chat.completions.create(model="gw/balanced", messages=replay).choices[0].message.content

for name, model in (("openai", "openai:gpt-test"), ("anthropic", "anthropic:claude-test")):
    with client.chat.completions.stream(
        **marked("use-tools"), tools=tools, extra_headers={"X-Gateway-Override-Model": model}
    ) as stream:
        for _event in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    seen["tools_" + name] = {
        "finish_reason": choice.finish_reason,
        "calls": [[c.id, c.function.name, json.loads(c.function.arguments)] for c in choice.message.tool_calls],
    }


def read_broken():
    for _chunk in client.chat.completions.create(**marked("break-off"), stream=True):
        pass


stranger = openai.OpenAI(api_key="gw_wrong", base_url=os.environ["GATEWAY_URL"] + "/v1", max_retries=0)
seen["errors"] = {
    "401": failure(lambda: stranger.models.list()),
    "404": failure(lambda: client.models.retrieve("gw/nothing")),
    "422": failure(lambda: client.chat.completions.create(**question, temperature=9)),
    "429": failure(lambda: client.chat.completions.create(**marked("too-many"))),
    "502": failure(lambda: client.chat.completions.create(**marked("all-down"))),
    "stream": failure(read_broken),
}
seen["models"] = [model.id for model in client.models.list().data][:3]
seen["model"] = client.models.retrieve("gw/balanced").id

print(json.dumps(seen))
