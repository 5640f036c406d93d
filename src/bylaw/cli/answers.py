"""Implements `--llm` and related options, with which a model answers questions that code cannot decide."""

import shlex
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from bylaw.cli.command import Folder, Name
from bylaw.engine.conversation import OpenRequests
from bylaw.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from bylaw.answering import Answerer


class ModelOptions(Struct, frozen=True, kw_only=True):
    """The options for commands that may query a model."""

    llm: Annotated[
        str | None,
        "--llm MODEL",
        "Model to ask when code cannot decide: a name at OPENAI_BASE_URL, batch:DIR, or recorded (in --memory).",
    ] = None
    memory: Annotated[Folder, "For --llm: folder for answers and plans."] = None
    embedder: Annotated[
        Name, "With --memory, how to compare plans: hashed, wordllama (`embed` extra), a folder or a URL."
    ] = ""
    operations: Annotated[
        tuple[str, ...],
        "--operations SERVER",
        "For --llm: an MCP server with tools for plans: a quoted command or a URL.",
    ] = ()


class Models(Struct, frozen=True):
    answers: "Answerer | None" = None
    """Answers questions about predicates, which decide whether rules hold."""
    requests: OpenRequests | None = None
    """Interprets what the user requested."""


@contextmanager
def open_answers(given: ModelOptions, *, budget: int | None = None) -> Generator[Models]:
    """Open the models that the options name, and close them when the command ends.

    Without `--llm`, no model is opened.
    """
    if given.llm is None:
        if given.memory is not None or given.operations or given.embedder:
            raise UsageError("`--memory`, `--embedder` and `--operations` require `--llm`", hint="add --llm MODEL")
        yield Models()
        return
    from bylaw.answering import Answerer, Plans
    from bylaw.answering.embedder import open_embedder
    from bylaw.answering.request import RequestReader
    from bylaw.llm.source import open_chat

    chat = open_chat(given.llm, kept=given.memory / "answers" if given.memory is not None else None)
    with ExitStack() as stack:
        added: list[Any] = []
        for each in given.operations:
            try:
                from bylaw.answering.mcp import McpServer
            except ImportError as error:
                raise MissingExtra("`--operations` needs fastmcp", "mcp") from error
            where = each if each.startswith(("http://", "https://")) else shlex.split(each)
            added += stack.enter_context(McpServer(where)).operations
        plans = Plans(given.memory, embed=open_embedder(given.embedder))
        answers = Answerer(chat, plans=plans, operations=added, budget=budget)
        yield Models(answers, RequestReader(chat))
