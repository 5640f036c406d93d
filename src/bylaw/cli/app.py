"""The commands of `bylaw`, and how their errors reach the user."""

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from bylaw import __version__
from bylaw.errors import BylawError, PackError, UsageError

COMMANDS = ("demo", "audit", "check", "explain", "report", "scan", "init")
"""Each is a module of this area with a function `NAME_command`."""


def build(arguments: Sequence[str]) -> typer.Typer:
    """The command line; only the module of the command asked for is imported, all of them for help."""
    app = typer.Typer(
        name="bylaw",
        help="Hold an LLM agent's tool calls to a written policy.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(_root)
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name in (asked,) if asked in COMMANDS else () if asked == "rules" else COMMANDS:
        module = importlib.import_module(f"bylaw.cli.{name}")
        app.command(name)(getattr(module, f"{name}_command"))
    if asked == "rules" or asked not in COMMANDS:
        from bylaw.cli.rules import rules_app

        app.add_typer(rules_app, name="rules")
    return app


def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        print(__version__)
        raise typer.Exit


class _Stopped(BaseException):
    """The user pressed Ctrl-C. Not KeyboardInterrupt: typer would end with 1, the status of a finding."""


def _stop(*_: object) -> None:
    raise _Stopped


def run() -> None:
    """Run the command line; an error the user can fix is one line and status 2."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        try:
            if sys.argv[1:] == ["--version"]:
                print(__version__)
            else:
                build(sys.argv[1:])()
        finally:
            print(end="", flush=True)
    except SystemExit as end:
        # typer and rich make 1 of a closed pipe, the status of a finding.
        if isinstance(end.__context__, BrokenPipeError):
            _leave()
        raise
    except BrokenPipeError:
        _leave()
    except PackError as error:
        for fault in error.faults:
            print(f"bylaw: {fault.code} {fault}", file=sys.stderr)
        count = len(error.faults)
        print(f"bylaw: pack `{error.place}` has {count} fault{'s' if count != 1 else ''}", file=sys.stderr)
        sys.exit(2)
    except BylawError as error:
        print(f"bylaw: {error.code} {error}", file=sys.stderr)
        sys.exit(2)
    except (_Stopped, KeyboardInterrupt):
        print("\nbylaw: stopped before the end", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        # Not 1: a full disk must not pass for a finding.
        why = (error.strerror or str(error)).lower()
        print(f"bylaw: {UsageError(why, place=str(error.filename or ''))}", file=sys.stderr)
        sys.exit(2)


def _leave() -> NoReturn:
    """End as other tools do when nobody reads on, as in `bylaw scan LOGS | head`."""
    # What is still to be written would fail once more, with a traceback, when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(141)
