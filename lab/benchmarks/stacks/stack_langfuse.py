"""The plain loop, traced by Langfuse's SDK. Its server is a sink that returns observations in the API's format."""

import json
import os
from typing import Any

from script import Script
from sink import Sink, langfuse_rows
from stack_loop import Loop


def drive(script: Script, url: str, page: Any) -> None:
    sink = Sink()
    os.environ |= {"LANGFUSE_HOST": sink.url, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    from langfuse import get_client, observe, propagate_attributes
    from langfuse.openai import OpenAI

    class Traced(Loop):
        def call(self, name: str, arguments: dict[str, Any], conversation: str, id: str) -> str:
            def run(**given: Any) -> str:
                return super(Traced, self).call(name, given, conversation, id)

            return observe(name=name, as_type="tool")(run)(**arguments)

    loop = Traced(script, OpenAI(base_url=url, api_key="none"))

    @observe(name="desk", as_type="agent", capture_input=False, capture_output=False)
    def turn(talk: dict[str, Any], user: str) -> None:
        loop.turn(talk, user)

    for talk, user in script.interleaved():
        with propagate_attributes(session_id=talk["id"]):
            turn(talk, user)
    get_client().flush()
    rows, traces = langfuse_rows(sink)
    sink.answers["/api/public/observations"] = {"data": rows, "meta": {"totalPages": 1}}
    page.run("after")
    with open("observations.jsonl", "a") as out:
        out.writelines(json.dumps(trace) + "\n" for trace in traces)
