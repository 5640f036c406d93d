"""The plain loop, traced by LangSmith's SDK. Its server is a sink that returns the runs in the API's format."""

import os
from typing import Any

import openai
from script import Script
from sink import PROJECT, Sink, langsmith_runs
from stack_loop import Loop


def drive(script: Script, url: str, page: Any) -> None:
    sink = Sink()
    limits = {"size_limit": 100, "size_limit_bytes": 20_971_520, "scale_up_nthreads_limit": 1}
    scale = {"scale_up_qsize_trigger": 1000, "scale_down_nempty_trigger": 4, "use_multipart_endpoint": True}
    sink.answers["/info"] = {"batch_ingest_config": {**limits, **scale}}
    os.environ |= {"LANGSMITH_ENDPOINT": sink.url, "LANGSMITH_API_KEY": "none"}
    os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_PROJECT": "clinic"}
    from langsmith import Client, traceable
    from langsmith.wrappers import wrap_openai

    client = Client()

    class Traced(Loop):
        def call(self, name: str, arguments: dict[str, Any], conversation: str, id: str) -> str:
            def run(**given: Any) -> str:
                return super(Traced, self).call(name, given, conversation, id)

            return traceable(name=name, run_type="tool", client=client)(run)(**arguments)

    loop = Traced(script, wrap_openai(openai.OpenAI(base_url=url, api_key="none"), tracing_extra={"client": client}))

    @traceable(name="desk", client=client)
    def turn(id: str, user: str) -> None:
        loop.turn(script.by_id[id], user)

    for talk, user in script.interleaved():
        turn(talk["id"], user, langsmith_extra={"metadata": {"thread_id": talk["id"]}})
    client.flush()
    project = {"id": PROJECT, "name": "clinic", "tenant_id": PROJECT, "start_time": "2025-01-01T00:00:00"}
    project["reference_dataset_id"] = None
    sink.answers["/sessions"] = [project]
    sink.answers["/runs/query"] = {"runs": langsmith_runs(sink), "cursors": {"next": None}}
    page.run("after", client=client)
