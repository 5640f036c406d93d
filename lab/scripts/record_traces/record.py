"""Record one conversation with a real instrumentation: `python record.py NAME OUT_FOLDER`.

Each needs an environment of its own, since their pins clash:

    genai, genai-events, genai-off   opentelemetry-instrumentation-openai-v2
    openllmetry                      opentelemetry-instrumentation-openai
    openinference                    openinference-instrumentation-openai
    openinference-langchain          langchain langchain-openai openinference-instrumentation-langchain
    langchain, langsmith-langchain   the same
    langfuse                         langfuse
    langsmith                        langsmith
    inspect                          inspect_ai

and `openai opentelemetry-sdk opentelemetry-exporter-otlp-proto-http` for those that write spans.
"""

import json
import os
import sys
from pathlib import Path

import clinic
import loopback


def _client():
    import openai

    return openai.OpenAI(base_url=loopback.serve_model(), api_key="none")


def _genai(out: Path, name: str, capture: str, latest: bool) -> None:
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = capture
    if latest:
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    import otlp
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    path = out / f"{name}.otlp.jsonl"
    provider = otlp.tracer_provider(path)
    logs = LoggerProvider(resource=provider.resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(otlp.log_file(path)))
    OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=logs)
    tracer = provider.get_tracer("clinic")
    clinic.run = _traced_tool(tracer, capture)
    conversation = clinic.talk(_client())
    next(conversation)
    for _messages in iter(lambda: _in_span(tracer, conversation), None):
        pass
    provider.force_flush()
    logs.force_flush()


def _in_span(tracer, conversation):
    """One of the user's messages: a trace of its own, as a web application makes them."""
    with tracer.start_as_current_span("invoke_agent clinic") as span:
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        span.set_attribute("gen_ai.agent.name", "clinic")
        span.set_attribute("gen_ai.conversation.id", "conv-1")
        return next(conversation, None)


def _traced_tool(tracer, capture: str):
    """Tools are the application's own; it traces them as the conventions say."""

    def run(name: str, **arguments: str) -> str:
        with tracer.start_as_current_span(f"execute_tool {name}") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", name)
            result = clinic.TOOLS[name](**arguments)
            if capture not in {"", "false", "no_content"}:
                span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
                span.set_attribute("gen_ai.tool.call.result", result)
            return result

    return run


def genai(out: Path) -> None:
    _genai(out, "genai", "span_only", latest=True)


def genai_events(out: Path) -> None:
    _genai(out, "genai-events", "true", latest=False)


def genai_off(out: Path) -> None:
    _genai(out, "genai-off", "false", latest=False)


def openllmetry(out: Path) -> None:
    import otlp
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    os.environ["TRACELOOP_METRICS_ENABLED"] = "false"
    provider = otlp.tracer_provider(out / "openllmetry.otlp.jsonl")
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    for _messages in clinic.talk(_client()):
        pass
    provider.force_flush()


def openinference(out: Path) -> None:
    import otlp
    from openinference.instrumentation import using_session
    from openinference.instrumentation.openai import OpenAIInstrumentor

    provider = otlp.tracer_provider(out / "openinference.otlp.jsonl")
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    with using_session("conv-1"):
        for _messages in clinic.talk(_client()):
            pass
    provider.force_flush()


def _langchain_agent():
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=loopback.serve_model(), api_key="none")
    return create_agent(model, list(clinic.TOOLS.values()), system_prompt=clinic.SYSTEM)


def _langchain_talk(agent, config: dict | None = None) -> list:
    messages: list = []
    for text in clinic.USER:
        messages = agent.invoke({"messages": [*messages, ("user", text)]}, config=config)["messages"]
    return messages


def openinference_langchain(out: Path) -> None:
    import otlp
    from openinference.instrumentation import using_session
    from openinference.instrumentation.langchain import LangChainInstrumentor

    provider = otlp.tracer_provider(out / "openinference-langchain.otlp.jsonl")
    LangChainInstrumentor().instrument(tracer_provider=provider)
    with using_session("conv-1"):
        _langchain_talk(_langchain_agent())
    provider.force_flush()


def langchain(out: Path) -> None:
    from langchain_core.load import dumpd
    from langchain_core.messages import messages_to_dict

    messages = _langchain_talk(_langchain_agent())
    (out / "langchain-dict.jsonl").write_text(json.dumps(messages_to_dict(messages)) + "\n")
    (out / "langchain-dumpd.jsonl").write_text(json.dumps({"id": "conv-1", "messages": dumpd(messages)}) + "\n")


def langfuse(out: Path) -> None:
    url, kept = loopback.serve_sink()
    os.environ |= {
        "LANGFUSE_HOST": url,
        "LANGFUSE_BASE_URL": url,
        "LANGFUSE_PUBLIC_KEY": "pk",
        "LANGFUSE_SECRET_KEY": "sk",
    }
    import otlp
    from langfuse import get_client, observe, propagate_attributes
    from langfuse.openai import OpenAI
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    traced = {name: observe(as_type="tool")(tool) for name, tool in clinic.TOOLS.items()}
    clinic.run = lambda name, **arguments: traced[name](**arguments)
    conversation = clinic.talk(OpenAI(base_url=loopback.serve_model(), api_key="none"))

    @observe(as_type="agent")
    def clinic_agent():
        return None if next(conversation, None) is None else "done"

    next(conversation)
    with propagate_attributes(session_id="conv-1"):
        while clinic_agent():
            pass
    get_client().flush()
    with (out / "langfuse.otlp.jsonl").open("w") as lines:
        for path, headers, body in kept:
            if path.endswith("/traces"):
                if headers.get("Content-Encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                lines.write(json.dumps(otlp.as_json(ExportTraceServiceRequest.FromString(body))) + "\n")


def _langsmith_lines(out: Path, kept: list) -> None:
    """The runs as posted, put together as the server does: each part of a body is a run or one field of it."""
    import email.parser
    import email.policy
    import gzip

    runs: dict[str, dict] = {}
    for _path, headers, body in kept:
        if headers.get("Content-Encoding") == "zstd":
            import zstandard

            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        elif headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if not headers.get("Content-Type", "").startswith("multipart"):
            continue
        head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        for part in email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts():
            _event, id, *field = part.get_param("name", header="content-disposition").split(".")
            value = json.loads(part.get_payload(decode=True))
            runs.setdefault(id, {}).update(
                {field[0]: value} if field else {k: v for k, v in value.items() if v is not None}
            )
    for run in runs.values():
        extra = run.get("extra", {})
        extra.pop("runtime", None)
        # The machine's own: endpoint and environment.
        extra["metadata"] = {
            key: value for key, value in extra.get("metadata", {}).items() if not key.startswith("LANGSMITH")
        }
    out.write_text("".join(json.dumps(run) + "\n" for run in runs.values()))


def langsmith(out: Path) -> None:
    url, kept = loopback.serve_sink()
    os.environ |= {
        "LANGSMITH_ENDPOINT": url,
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_PROJECT": "clinic",
    }
    from langsmith import Client, traceable
    from langsmith.wrappers import wrap_openai

    service = Client()
    traced = {name: traceable(run_type="tool", client=service)(tool) for name, tool in clinic.TOOLS.items()}
    clinic.run = lambda name, **arguments: traced[name](**arguments)
    conversation = clinic.talk(wrap_openai(_client(), tracing_extra={"client": service}))

    @traceable(name="clinic", client=service)
    def turn(**_: object):
        return None if next(conversation, None) is None else {"done": True}

    next(conversation)
    while turn(langsmith_extra={"metadata": {"thread_id": "conv-1"}}):
        pass
    service.flush()
    _langsmith_lines(out / "langsmith.jsonl", kept)


def langsmith_langchain(out: Path) -> None:
    url, kept = loopback.serve_sink()
    os.environ |= {
        "LANGSMITH_ENDPOINT": url,
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_PROJECT": "clinic",
    }
    from langchain_core.tracers.langchain import wait_for_all_tracers

    _langchain_talk(_langchain_agent(), {"metadata": {"thread_id": "conv-1"}})
    wait_for_all_tracers()
    _langsmith_lines(out / "langsmith-langchain.jsonl", kept)


def inspect(out: Path) -> None:
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, solver, system_message
    from inspect_ai.tool import ToolDef

    tools = []
    for name, function in clinic.TOOLS.items():
        parameters = {parameter: parameter for parameter in function.__annotations__ if parameter != "return"}

        async def call(_function=function, **arguments: str) -> str:
            return _function(**arguments)

        call.__annotations__ = dict(function.__annotations__)
        tools.append(_inspect_tool(ToolDef, name, function, parameters))

    @solver
    def talk():
        async def solve(state, generate):
            state.tools = tools
            state = await generate(state)
            state.messages.append(ChatMessageUser(content=clinic.USER[1]))
            return await generate(state)

        return solve

    model = get_model("openai-api/clinic/scripted", base_url=loopback.serve_model(), api_key="none")
    task = inspect_ai.Task(
        dataset=[Sample(input=clinic.USER[0], target="A7 is cancelled", id="conv-1")],
        solver=[system_message(clinic.SYSTEM), talk()],
        scorer=includes(),
        name="clinic",
    )
    _ = generate
    for form in ("eval", "json"):
        folder = out / f"inspect-{form}"
        inspect_ai.eval(task, model=model, log_dir=str(folder), log_format=form, display="none", log_model_api=False)
        (written,) = folder.iterdir()
        written.rename(out / f"inspect.{form}")
        folder.rmdir()


def _inspect_tool(ToolDef, name, function, parameters):
    import inspect as python

    async def call(**arguments: str) -> str:
        return function(**arguments)

    call.__signature__ = python.signature(function)
    call.__annotations__ = dict(function.__annotations__)
    return ToolDef(call, name=name, description=function.__doc__, parameters=parameters).as_tool()


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    globals()[name.replace("-", "_")](Path(folder).resolve())
