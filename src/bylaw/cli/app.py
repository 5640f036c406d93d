"""The commands of `bylaw`, and how their errors reach the user."""

import sys

import typer

from bylaw import __version__
from bylaw.cli import audit, check, explain, init, report, scan
from bylaw.cli.rules import rules_app
from bylaw.errors import BylawError, PackError

app = typer.Typer(
    name="bylaw",
    help="Hold an LLM agent's tool calls to a written policy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("audit")(audit.audit_command)
app.command("check")(check.check_command)
app.command("explain")(explain.explain_command)
app.command("report")(report.report_command)
app.command("scan")(scan.scan_command)
app.command("init")(init.init_command)
app.add_typer(rules_app, name="rules")


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def run() -> None:
    """Run the command line; an error the user can fix is one line and status 2."""
    try:
        app()
    except PackError as error:
        for fault in error.faults:
            print(f"bylaw: {fault.code} {fault}", file=sys.stderr)
        count = len(error.faults)
        print(f"bylaw: pack `{error.place}` has {count} fault{'s' if count != 1 else ''}", file=sys.stderr)
        sys.exit(2)
    except BylawError as error:
        print(f"bylaw: {error.code} {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
