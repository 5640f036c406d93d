"""`--llm` and what goes with it: who answers for predicates that code cannot settle."""

import shlex
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from bylaw.engine.conversation import OpenRequests
from bylaw.errors import UsageError

if TYPE_CHECKING:
    from bylaw.answering import Answerer

Command = TypeVar("Command", bound=Callable[..., Any])


def answers_options(command: Command) -> Command:
    """Options of a command that may ask a model; `open_answers` takes them."""
    for option in (
        click.option(
            "--operations",
            metavar="SERVER",
            multiple=True,
            help="For --llm: an MCP server whose tools plans may use, a command in quotes or a URL.",
        ),
        click.option(
            "--embedder",
            metavar="NAME",
            default="",
            help="For --memory, what tells like plans: hashed (spelling), wordllama (extra `embed`), a folder, a URL.",
        ),
        click.option(
            "--memory",
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="For --llm: where answers and plans that worked are kept.",
        ),
        click.option(
            "--llm",
            metavar="MODEL",
            help="Ask a model where code cannot tell: one at OPENAI_BASE_URL, batch:DIR, or recorded (in --memory).",
        ),
    ):
        command = option(command)
    return command


class Models(Struct, frozen=True):
    """Who is asked where code cannot tell."""

    answers: "Answerer | None" = None
    """For predicates."""
    requests: OpenRequests | None = None
    """For what a user's request allows."""


@contextmanager
def open_answers(
    llm: str | None,
    memory: Path | None,
    operations: tuple[str, ...],
    embedder: str = "",
    *,
    budget: int | None = None,
) -> Generator[Models]:
    """Who answers, while the command runs; nobody without `--llm`."""
    if llm is None:
        if memory is not None or operations or embedder:
            raise UsageError(
                "`--memory`, `--embedder` and `--operations` go with `--llm`", hint="say which model to ask"
            )
        yield Models()
        return
    from bylaw.answering import Answerer, Plans
    from bylaw.answering.embedder import open_embedder
    from bylaw.answering.request import RequestReader
    from bylaw.llm.source import open_chat

    chat = open_chat(llm, kept=memory / "answers" if memory is not None else None)
    with ExitStack() as stack:
        added: list[Any] = []
        for each in operations:
            try:
                from bylaw.answering.mcp import McpServer
            except ImportError as error:
                raise UsageError(
                    "`--operations` needs fastmcp", hint="in your clone of Bylaw: pip install '.[mcp]'"
                ) from error
            where = each if each.startswith(("http://", "https://")) else shlex.split(each)
            added += stack.enter_context(McpServer(where)).operations
        answers = Answerer(chat, plans=Plans(memory, embed=open_embedder(embedder)), operations=added, budget=budget)
        yield Models(answers, RequestReader(chat))
