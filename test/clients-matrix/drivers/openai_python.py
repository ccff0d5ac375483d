"""The official OpenAI client for Python."""

import json

import openai

from serve import base_url, data_url, key_of, picture, questions, retries_of, serve, tools

report = {"type": "json_schema", "json_schema": {"name": "report", "strict": True, "schema": questions["schema"]}}


def client(call):
    return openai.OpenAI(
        api_key=key_of(call), base_url=base_url, default_headers=call.get("headers"), **retries_of(call)
    )


def body(call, **additions):
    sampling = {"temperature": call["temperature"]} if "temperature" in call else {}
    return {
        "model": call["model"],
        "messages": [{"role": "user", "content": questions["prompt"]}],
        **sampling,
        **additions,
    }


def view(completion, block=None):
    choice = completion.choices[0]
    usage = completion.usage
    return {
        "text": choice.message.content or "",
        "toolCalls": [
            {"id": made.id, "name": made.function.name, "input": json.loads(made.function.arguments)}
            for made in choice.message.tool_calls or []
        ],
        "finish": choice.finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens] if usage else None,
        "gateway": block or (completion.model_extra or {}).get("gateway"),
    }


def ask(call, **additions):
    return view(client(call).chat.completions.create(**body(call, **additions)))


def streamed(call, progress, **additions):
    pieces = 0
    request = body(call, stream_options={"include_usage": True}, **additions)
    with client(call).chat.completions.stream(**request) as stream:
        for event in stream:
            if event.type == "content.delta":
                pieces += 1 if event.delta else 0
                progress["text"] += event.delta
        final = stream.get_final_completion()
    return {**view(final, (final.choices[0].message.model_extra or {}).get("gateway")), "pieces": pieces}


def converse(call, _progress):
    chat = client(call).chat
    request = body(call, tools=tools)
    message = chat.completions.create(**request).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": made.id, "content": questions["toolResult"]} for made in message.tool_calls
    ]
    request["messages"] = [*request["messages"], message, *results]
    return view(chat.completions.create(**request))


def json_answer(call, _progress):
    seen = ask(call, response_format=report)
    return {**seen, "object": json.loads(seen["text"])}


def json_stream(call, progress):
    seen = streamed(call, progress, response_format=report)
    return {**seen, "object": json.loads(seen["text"])}


def json_by_tool(call, _progress):
    tool = {"type": "function", "function": {"name": "report", "parameters": questions["schema"]}}
    seen = ask(call, tools=[tool], tool_choice={"type": "function", "function": {"name": "report"}})
    return {**seen, "object": seen["toolCalls"][0]["input"]}


def cancel(call, _progress):
    text = ""
    with client(call).chat.completions.create(**body(call, stream=True)) as stream:
        for chunk in stream:
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            if "t1" in text:
                break
    return {"text": text}


serve({
    "chat": lambda call, _progress: ask(call),
    "stream": streamed,
    "tools": lambda call, _progress: ask(call, tools=tools),
    "stream-tools": lambda call, progress: streamed(call, progress, tools=tools),
    "tool-loop": converse,
    "image": lambda call, _progress: ask(call, messages=picture(data_url)),
    "image-url": lambda call, _progress: ask(call, messages=picture(questions["imageUrl"])),
    "json": json_answer,
    "stream-json": json_stream,
    "json-by-tool": json_by_tool,
    "cancel": cancel,
})
