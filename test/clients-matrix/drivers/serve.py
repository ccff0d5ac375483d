"""What the drivers in Python share: the calls come in and the views go out, one JSON object a line."""

import json
import os
import pathlib
import sys

questions = json.loads(pathlib.Path(__file__).with_name("questions.json").read_text())
base_url = os.environ["GATEWAY_URL"] + "/v1"
tools = [{"type": "function", "function": tool} for tool in questions["tools"]]


def key_of(call):
    return call.get("key") or os.environ["GATEWAY_KEY"]


def retries_of(call):
    """None at all, or as many as the client's users get who set nothing."""
    return {} if call.get("retry") else {"max_retries": 0}


def picture(url):
    content = [{"type": "text", "text": questions["imagePrompt"]}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": content}]


data_url = "data:image/png;base64," + questions["image"]


def describe(error):
    response = getattr(error, "response", None)
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None),
        "type": getattr(error, "type", None),
        "code": getattr(error, "code", None),
        "message": str(error),
        "retryAfter": response.headers.get("retry-after") if response is not None else None,
        "requestId": getattr(error, "request_id", None),
    }


def serve(actions):
    for line in sys.stdin:
        call = json.loads(line)
        progress = {"text": ""}
        try:
            reply = {"seen": actions[call["do"]](call, progress)}
        except Exception as error:
            reply = {"failure": {**describe(error), "text": progress["text"]}}
        print(json.dumps(reply), flush=True)
