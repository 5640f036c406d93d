"""What to type instead, where a command line is not understood."""

import click

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
