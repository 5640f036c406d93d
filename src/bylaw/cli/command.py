"""Builds a click command from a function's signature, so that each option is declared once.

    @command("report")
    def report_command(
        out: Annotated[Path, "Output folder of an audit."],
        *,
        target: Annotated[Path | None, "--to FILE", "Where to write it; by default OUT/report.html."] = None,
    ) -> None:

Parameters after the `*` are options. In an annotation, a string that starts with `--` gives the flags and the metavar.
A string in capitals is the metavar, and any other string is the help text. The annotation may also contain a click type
or a mapping of keyword arguments for click. A record (`Struct`) as parameter stands for one option per field.
"""

import builtins
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import click
import msgspec

from bylaw.errors import UsageError

Work = Callable[..., int | None]


def command(name: str, group: click.Group | None = None) -> Callable[[Work], click.Command]:
    """Turn a function into a command in `group`. The function returns the exit status."""

    def make(work: Work) -> click.Command:
        hints = get_type_hints(work, include_extras=True)
        records: dict[str, type[msgspec.Struct]] = {}
        params: list[click.Parameter] = []
        for each in inspect.signature(work).parameters.values():
            hint = hints[each.name]
            if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
                records[each.name] = hint
                params += _fields(hint)
            else:
                params.append(_parameter(each.name, hint, each.default, is_option=each.kind is each.KEYWORD_ONLY))

        def run(**given: Any) -> int | None:
            made = {name: kind(**{n: given.pop(n) for n in kind.__struct_fields__}) for name, kind in records.items()}
            return work(**given, **made)

        about = inspect.getdoc(work) or ""
        made = click.Command(name, callback=run, params=params, help=about, short_help=about.partition("\n")[0])
        if group is not None:
            group.add_command(made)
        return made

    return make


def _fields(record: type[msgspec.Struct]) -> Iterator[click.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    for each in msgspec.structs.fields(record):
        default = inspect.Parameter.empty if each.default is msgspec.NODEFAULT else each.default
        yield _parameter(each.name, hints[each.name], default, is_option=True)


def _parameter(name: str, hint: Any, default: Any, *, is_option: bool) -> click.Parameter:
    settings = _settings(hint)
    flags, many = settings.pop("flags", [f"--{name.replace('_', '-')}"]), settings.pop("many", False)
    settings["required"] = default is inspect.Parameter.empty and "default" not in settings
    if default not in (inspect.Parameter.empty, None, ()):
        settings["default"] = default
    if many:
        settings |= {"multiple": True} if is_option else {"nargs": -1}
    return click.Option([name, *flags], **settings) if is_option else click.Argument([name], **settings)


def _settings(hint: Any) -> dict[str, Any]:
    parts = [part for part in get_args(hint) if part is not NoneType]
    match get_origin(hint):
        case typing.Annotated:
            settings = _settings(parts[0])
            for each in parts[1:]:
                settings |= _annotated(each)
            return settings
        case types.UnionType | typing.Union if len(parts) == 1:
            return _settings(parts[0])
        case builtins.tuple:
            return {**_settings(parts[0]), "many": True}
        case typing.Literal:
            return {"type": click.Choice(parts)}
        case _ if hint is bool:
            return {"is_flag": True}
        case _:
            return {"type": LocalPath(path_type=Path) if hint is Path else hint} if hint in (Path, int, float) else {}


def _annotated(note: Any) -> dict[str, Any]:
    match note:
        case str() if note.startswith("--"):
            flags = [word for word in note.split() if word.startswith("--")]
            metavar = note.split()[len(flags) :]
            return {"flags": flags, "metavar": metavar[0]} if metavar else {"flags": flags}
        case str():
            return {"metavar": note} if note == note.upper() else {"help": note}
        case dict():
            return cast(dict[str, Any], note)
        case _:
            return {"type": note}


class LocalPath(click.Path):
    """A local path. A URL is refused, because it would be read as a folder name such as `s3:`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if re.match(r"[A-Za-z][\w+.-]+:/", str(value)):
            self.fail(f"`{value}` is a URL; copy the files to this machine, and pass their path", param, ctx)
        return super().convert(value, param, ctx)


class Word(click.Choice[str]):
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value.replace("-", "_"), param, ctx)


def _once(ctx: click.Context, param: click.Parameter, value: tuple[Any, ...]) -> Any:
    """Refuse an option that is given twice, because click would silently use only the last value."""
    if len(value) > 1:
        raise UsageError(f"{param.opts[0]} was given {len(value)} times", hint="pass it only once")
    return value[0] if value else None


def pack_name(out: Path) -> str:
    """Return the name of the pack in a folder."""
    return re.sub(r"[^a-z0-9]+", "-", out.resolve().name.lower()).strip("-") or "pack"


File = Annotated[Path | None, "FILE"]
GivenFile = Annotated[File, click.Path(path_type=Path, exists=True, dir_okay=False)]
Folder = Annotated[Path | None, "DIR"]
Name = Annotated[str, "NAME"]
Count = Annotated[int, "N", click.IntRange(min=1)]
Port = Annotated[int, click.IntRange(0, 65535), "Port to listen on; 0 picks a free one."]
Json = Annotated[bool, "--json", "Print JSON."]
Audited = Annotated[Path, "Output folder of an audit."]
PackOption = Annotated[str, "--pack PACK", "The folder of a pack, or the name of a built-in pack."]
PackArgument = Annotated[str, "The folder of a pack, or the name of a built-in pack."]
DocumentOption = Annotated[
    File, "The policy document, if the pack does not contain it.", {"callback": _once, "multiple": True}
]
DocumentFiles = Annotated[
    tuple[Path, ...],
    "--document FILE",
    "The policy: Markdown, text, HTML, PDF, DOCX or a folder. May be repeated.",
]
TOOLS = "The tools: OpenAPI, MCP tools/list or function definitions; or Python: `tools.py`, `module:function`."
EarlierPacks = Annotated[
    tuple[str, ...], "--earlier PACK", "An older pack version, for conversations that began under it."
]
