"""The commands of `bylaw`, and how their errors reach the user."""

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
    "shield": "`bylaw proxy` stands before an MCP server, `bylaw serve` answers over HTTP; Python has `bylaw.Shield`",
    "cover": "`bylaw check PACK` says which sentences are covered",
    "test": "`bylaw check PACK` runs the cases of a pack",
    "validate": "`bylaw check PACK` checks a pack",
    "lint": "`bylaw check PACK` checks a pack",
    "run": "`bylaw audit LOGS --pack PACK` judges recorded conversations",
    "new": "`bylaw init LOGS --document FILE` starts a pack",
    "console": "`bylaw view OUT` opens an audit in the browser",
    "train": "`bylaw align --help` lists what teaches a model",
}
"""Commands that people try, and where that stands."""
_MISSING = {
    "--pack": "a folder of your own (`bylaw init LOGS --document FILE` starts one), or a ready one by name: clinic",
    "logs": "files or folders of recorded conversations; which formats: docs/formats.md",
    "pack": "a folder with a pack.yaml, or the name of a ready one: clinic",
}
"""What is missing, and what may stand there."""
_BY_OPTION = {"compile": "--document", "init": "--document"}
"""What a file without an option was probably meant as."""
_DOCUMENTS = (".md", ".txt", ".html", ".pdf", ".docx")


def advice(error: click.ClickException) -> str:
    """A line that says how to go on; empty where the error says it itself."""
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
            option = _BY_OPTION.get(error.ctx.info_name or "")
            file = error.message.partition("(")[2].rstrip(").")
            return f"the document is given with {option} {file}" if option and file.endswith(_DOCUMENTS) else ""
        case _:
            return ""


GROUPS = {
    "Start": {
        "demo": "Show what a near-miss is, on the shipped example.",
        "scan": "Show what logs tell without a pack, a model or a database.",
        "init": "Start a pack from logs and a policy document.",
        "check": "Check a pack: what to do next, whether its cases pass, what covers each sentence.",
    },
    "Audit recorded conversations": {
        "audit": "Audit recorded conversations under a policy pack.",
        "explain": "Explain the verdict on one call, or a broken rule; without an id, list the findings.",
        "view": "Look through an audit in the browser, and decide on what it found.",
        "report": "Write report.html from an audit's folder.",
        "sql": "Ask an audit's tables: conversations, calls, findings, open_questions, missing_facts.",
    },
    "Shield a live agent": {
        "proxy": "Stand between an MCP client and an MCP server, and decide on every tool call.",
        "tools": "Show how an MCP server's tools were described when accepted, and what changed; accept that.",
        "serve": "Answer over HTTP whether an agent may make a call.",
        "backtest": "Show what a change to a policy would have done to recorded calls.",
        "stop": "Block an agent, a tool, a policy or all writes of a tenant, immediately, for a set time.",
        "log": "The decision log: verify it, export it, answer approvals, remove conversations.",
    },
    "Compile a policy document": {
        "compile": "Compile a policy document and a catalogue of tools into a pack.",
        "review": "Review a pack: sentence beside check, cases, open questions; accept or reject.",
    },
    "Align the next model": {"align": "Teach a model to recall the right policy, and measure it."},
    "Look closer": {
        "rules": "Rules that bind whole conversations.",
    },
}
"""By what one wants, first steps first; each command has a module of its name."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
_COMPLETE = "_BYLAW_COMPLETE"


def _completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Print what a shell has to run to complete commands and options."""
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
    help='Print completion for bash, zsh or fish, as in: eval "$(bylaw --completion bash)".',
)
@click.version_option(__version__, message="%(version)s", help="Print the version and stop.")
def app() -> None:
    """Hold an LLM agent's tool calls to a written policy. First steps: demo, scan, init, check."""


@app.result_callback()
def _end(status: int | None) -> None:  # pyright: ignore[reportUnusedFunction]
    """What a command returns is its exit status; nothing means 0."""
    raise click.exceptions.Exit(status or 0)


def run() -> None:
    """Run the command line; an error the user can fix is one line and status 2."""
    try:
        if instruction := os.environ.get(_COMPLETE):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(app, {}, "bylaw", _COMPLETE, instruction))
        try:
            # Not `app()`: it makes 1, the status of a finding, of Ctrl-C and of a closed pipe.
            with app.make_context("bylaw", sys.argv[1:]) as context:
                app.invoke(context)
        finally:
            print(end="", flush=True)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        from bylaw.cli.app import advice

        error.show()
        if told := advice(error):
            print(visible(told), file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # So does rich.
        if isinstance(end.__context__, BrokenPipeError):
            _leave()
        raise
    except BrokenPipeError:
        _leave()
    except PackError as error:
        for fault in error.faults:
            print(visible(f"bylaw: {fault.code} {fault}"), file=sys.stderr)
        if len(error.faults) > 1:
            print(visible(f"bylaw: pack `{error.place}` has {len(error.faults)} faults"), file=sys.stderr)
        sys.exit(2)
    except BylawError as error:
        print(visible(f"bylaw: {error.code} {error}"), file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        print("\nbylaw: stopped before the end", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        # Not 1: a full disk must not pass for a finding.
        why = (error.strerror or str(error)).lower()
        is_full = error.errno in (ENOSPC, EDQUOT) or "no space left" in why
        hint = "free some space and run the same command again; a run in shards resumes" if is_full else ""
        print(visible(f"bylaw: {UsageError(why, place=str(error.filename or ''), hint=hint)}"), file=sys.stderr)
        sys.exit(2)


def _leave() -> NoReturn:
    """End as other tools do when nobody reads on, as in `bylaw scan LOGS | head`."""
    # What is still to be written would fail once more, with a traceback, when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(141)
