"""The commands of `bylaw`, and the printing of errors."""

import os
import sys
from errno import EDQUOT, ENOSPC
from typing import NoReturn

import click

from bylaw import __version__
from bylaw.cli.group import HELP_NAMES, OneFileEach
from bylaw.errors import BylawError, PackError, UsageError
from bylaw.text.visible import visible

_ELSEWHERE = {
    "shield": "use `bylaw proxy` for an MCP server, `bylaw serve` for HTTP, or `bylaw.Shield` in Python",
    "cover": "`bylaw check PACK` shows which sentences are covered",
    "test": "`bylaw check PACK` runs the cases of a pack",
    "validate": "`bylaw check PACK` checks a pack",
    "lint": "`bylaw check PACK` checks a pack",
    "run": "`bylaw audit LOGS --pack PACK` audits recorded conversations",
    "new": "`bylaw init LOGS --document FILE` starts a pack",
    "console": "`bylaw view OUT` opens an audit in the browser",
    "train": "`bylaw align --help` lists the training commands",
}
"""Command names that people might try, and the commands that they mean."""
_MISSING = {
    "--pack": "your own folder (`bylaw init LOGS --document FILE` starts one), or the name of a built-in pack: clinic",
    "logs": "files or folders of recorded conversations; for the formats, see docs/formats.md",
    "pack": "a folder with a pack.yaml, or the name of a built-in pack: clinic",
}
"""Advice on what to pass, for each argument that may be missing."""
_DOCUMENTS = (".md", ".txt", ".html", ".pdf", ".docx")


def advice(error: click.ClickException) -> str:
    """Return the next step after a usage error. Return an empty string if the error message already contains it."""
    match error:
        case click.NoSuchCommand() if error.command_name in _ELSEWHERE:
            return _ELSEWHERE[error.command_name]
        case click.MissingParameter() if error.param is not None:
            names = [*error.param.opts, error.param.name or ""]
            return next(
                (
                    f"{error.param.human_readable_name.rstrip('.')}: {_MISSING[name]}"
                    for name in names
                    if name in _MISSING
                ),
                "",
            )
        case click.UsageError() if error.ctx is not None and error.message.startswith("Got unexpected extra argument"):
            file = error.message.partition("(")[2].rstrip(").")
            is_document = error.ctx.info_name in ("compile", "init") and file.endswith(_DOCUMENTS)
            return f"pass the document with --document {file}" if is_document else ""
        case _:
            return ""


GROUPS = {
    "Start": {
        "demo": "Show a near-miss and a violation in a built-in example.",
        "scan": "Find patterns in logs, without a pack, a model or a database.",
        "init": "Draft a pack from a policy document, and from tools, a database or logs.",
        "check": "Check a pack: show the next step, run the cases, and measure coverage.",
    },
    "Audit recorded conversations": {
        "audit": "Audit recorded conversations against a policy pack.",
        "explain": "Explain one finding of an audit, or list them all.",
        "view": "Browse an audit and triage its findings in the browser.",
        "report": "Write the HTML report of an audit.",
        "sql": "Query audit tables.",
    },
    "Shield a live agent": {
        "proxy": "Allow or block every tool call between an MCP client and server.",
        "tools": "Review and accept changed tool descriptions of an MCP server.",
        "serve": "Serve decisions over HTTP.",
        "prompt": "Print instructions for the agent's system prompt.",
        "backtest": "Show how a pack change would affect recorded calls.",
        "stop": "Block an agent, a tool, a policy or all writes for a set time.",
        "log": "Verify, export or prune the decision log; answer approvals.",
    },
    "Compile a policy document": {
        "compile": "Compile a policy document and a tool catalogue into a pack.",
        "review": "Review the checks of a pack, and accept or reject them.",
    },
    "Align the next model": {"align": "Train a model to recall the right policy, and evaluate it."},
    "Rules": {"rules": "List, draw and learn the rules of a pack."},
}
"""Summaries of the commands, grouped by purpose. Each command is in the module of the same name."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
_COMPLETE = "_BYLAW_COMPLETE"


def _completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        from click.shell_completion import shell_complete

        raise click.exceptions.Exit(shell_complete(app, {}, "bylaw", _COMPLETE, f"{shell}_source"))


@click.command(
    "bylaw",
    cls=OneFileEach,
    package="bylaw.cli",
    groups=GROUPS,
    context_settings={"show_default": True, "help_option_names": HELP_NAMES},
)
@click.option(
    "--completion",
    metavar="SHELL",
    type=click.Choice(("bash", "zsh", "fish")),
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help='Print shell completion, as in: eval "$(bylaw --completion bash)".',
)
@click.version_option(__version__, message="%(version)s", help="Print the version and exit.")
def app() -> None:
    """Check an LLM agent's tool calls against a written policy.

    To begin, run `bylaw demo`.
    """


@app.result_callback()
def _end(status: int | None) -> None:  # pyright: ignore[reportUnusedFunction]
    raise click.exceptions.Exit(status or 0)


def run() -> None:
    """Run the command line. On a user error, print the error on one line and exit with status 2."""
    try:
        if instruction := os.environ.get(_COMPLETE):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(app, {}, "bylaw", _COMPLETE, instruction))
        try:
            # Without this, `app()` would exit with status 1 on Ctrl-C or a closed pipe, and 1 means that there is a
            # finding.
            with app.make_context("bylaw", sys.argv[1:]) as context:
                app.invoke(context)
        finally:
            print(end="", flush=True)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        if hint := advice(error):
            print(visible(hint), file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # rich turns the exception for a closed pipe into SystemExit.
        if isinstance(end.__context__, BrokenPipeError):
            _leave()
        raise
    except BrokenPipeError:
        _leave()
    except PackError as error:
        for fault in error.faults:
            print(visible(f"bylaw: {fault.code} {fault}"), file=sys.stderr)
        if len(error.faults) > 1:
            print(visible(f"bylaw: pack `{error.place}` contains {len(error.faults)} errors"), file=sys.stderr)
        sys.exit(2)
    except BylawError as error:
        print(visible(f"bylaw: {error.code} {error}"), file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        print("\nbylaw: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        # Exit with status 2, because status 1 means that there is a finding.
        is_full = error.errno in (ENOSPC, EDQUOT)
        why = (os.strerror(error.errno) if is_full and error.errno else error.strerror or str(error)).lower()
        hint = "free some space and run the same command again; a run in shards resumes" if is_full else ""
        print(visible(f"bylaw: {UsageError(why, place=str(error.filename or ''), hint=hint)}"), file=sys.stderr)
        sys.exit(2)


def _leave() -> NoReturn:
    """Exit quietly after a pipe was closed, for example by `head` in `bylaw scan LOGS | head`."""
    # Otherwise, Python would flush stdout again at exit, fail, and print a traceback.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(141)
