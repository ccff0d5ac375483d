"""LangChain for Python."""

import json

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from serve import base_url, data_url, key_of, picture, questions, retries_of, serve, tools


def model(call):
    return ChatOpenAI(
        model=call["model"],
        api_key=key_of(call),
        base_url=base_url,
        default_headers=call.get("headers"),
        stream_usage=True,
        **({"temperature": call["temperature"]} if "temperature" in call else {}),
        **retries_of(call),
    )


def text_of(message):
    return message.content if isinstance(message.content, str) else ""


def view(message):
    usage = message.usage_metadata
    return {
        "text": text_of(message),
        "toolCalls": [{"id": made["id"], "name": made["name"], "input": made["args"]} for made in message.tool_calls],
        "finish": message.response_metadata.get("finish_reason"),
        "usage": [usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]] if usage else None,
    }


def ask(runnable, messages=questions["prompt"]):
    return view(runnable.invoke(messages))


def streamed(runnable, progress):
    whole = None
    pieces = 0
    for chunk in runnable.stream(questions["prompt"]):
        text = text_of(chunk)
        pieces += 1 if text else 0
        progress["text"] += text
        whole = chunk if whole is None else whole + chunk
    return {**view(whole), "pieces": pieces}


def converse(call, _progress):
    runnable = model(call).bind_tools(tools)
    question = HumanMessage(questions["prompt"])
    first = runnable.invoke([question])
    results = [ToolMessage(content=questions["toolResult"], tool_call_id=made["id"]) for made in first.tool_calls]
    return view(runnable.invoke([question, first, *results]))


def structured(call, method):
    strict = {"strict": True} if method == "json_schema" else {}
    runnable = model(call).with_structured_output(questions["schema"], method=method, include_raw=True, **strict)
    answer = runnable.invoke(questions["prompt"])
    if answer["parsing_error"] is not None:
        raise answer["parsing_error"]
    return {**view(answer["raw"]), "object": answer["parsed"]}


def json_stream(call, progress):
    schema = {key: value for key, value in questions["schema"].items() if key != "title"}
    report = {"type": "json_schema", "json_schema": {"name": "report", "strict": True, "schema": schema}}
    seen = streamed(model(call).bind(response_format=report), progress)
    return {**seen, "object": json.loads(seen["text"])}


def cancel(call, _progress):
    text = ""
    stream = model(call).stream(questions["prompt"])
    for chunk in stream:
        text += text_of(chunk)
        if "t1" in text:
            break
    stream.close()
    return {"text": text}


serve({
    "chat": lambda call, _progress: ask(model(call)),
    "stream": lambda call, progress: streamed(model(call), progress),
    "tools": lambda call, _progress: ask(model(call).bind_tools(tools)),
    "stream-tools": lambda call, progress: streamed(model(call).bind_tools(tools), progress),
    "tool-loop": converse,
    "image": lambda call, _progress: ask(model(call), picture(data_url)),
    "image-url": lambda call, _progress: ask(model(call), picture(questions["imageUrl"])),
    "json": lambda call, _progress: structured(call, "json_schema"),
    "stream-json": json_stream,
    "json-by-tool": lambda call, _progress: structured(call, "function_calling"),
    "cancel": cancel,
})
