"""`--llm` and what goes with it: who answers for predicates that code cannot settle."""

import shlex
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from bylaw.cli.command import Folder, Name
from bylaw.engine.conversation import OpenRequests
from bylaw.errors import UsageError

if TYPE_CHECKING:
    from bylaw.answering import Answerer


class ModelOptions(Struct, frozen=True, kw_only=True):
    """Options of a command that may ask a model."""

    llm: Annotated[
        str | None,
        "--llm MODEL",
        "Ask a model where code cannot tell: one at OPENAI_BASE_URL, batch:DIR, or recorded (in --memory).",
    ] = None
    memory: Annotated[Folder, "For --llm: folder for answers and plans."] = None
    embedder: Annotated[
        Name, "For --memory: similarity by hashed (spelling), wordllama (extra `embed`), a folder, a URL."
    ] = ""
    operations: Annotated[
        tuple[str, ...],
        "--operations SERVER",
        "For --llm: an MCP server whose tools plans may use, a command in quotes or a URL.",
    ] = ()


class Models(Struct, frozen=True):
    """Who is asked where code cannot tell."""

    answers: "Answerer | None" = None
    """For predicates."""
    requests: OpenRequests | None = None
    """For what a user's request allows."""


@contextmanager
def open_answers(given: ModelOptions, *, budget: int | None = None) -> Generator[Models]:
    """Who answers, while the command runs; nobody without `--llm`."""
    if given.llm is None:
        if given.memory is not None or given.operations or given.embedder:
            hint = "say which model to ask"
            raise UsageError("`--memory`, `--embedder` and `--operations` go with `--llm`", hint=hint)
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
                hint = "in your clone of Bylaw: pip install '.[mcp]'"
                raise UsageError("`--operations` needs fastmcp", hint=hint) from error
            where = each if each.startswith(("http://", "https://")) else shlex.split(each)
            added += stack.enter_context(McpServer(where)).operations
        plans = Plans(given.memory, embed=open_embedder(given.embedder))
        answers = Answerer(chat, plans=plans, operations=added, budget=budget)
        yield Models(answers, RequestReader(chat))
