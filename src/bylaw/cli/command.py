"""A command from a function's signature: whatever may be given stands there once, with its type and its help.

    @command("report")
    def report_command(
        out: Annotated[Path, "The folder an audit wrote."],
        *,
        target: Annotated[Path | None, "--to FILE", "Where to write it; by default OUT/report.html."] = None,
    ) -> None:

What may be given by name follows the `*`, under its flags and what stands for its value. Of an argument a text in
capitals is its name in the help, any other text the help. A type of click's, or a mapping of what else to tell click,
may stand beside them. A record (`Struct`) of such fields is one parameter for all of them.
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
    """Make a function a command, of a group where one is named; what it returns is the exit status."""

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

        made = click.Command(name, callback=run, params=params, help=inspect.getdoc(work))
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
    told = _told(hint)
    flags, many = told.pop("flags", [f"--{name.replace('_', '-')}"]), told.pop("many", False)
    told["required"] = default is inspect.Parameter.empty and "default" not in told
    if default not in (inspect.Parameter.empty, None, ()):
        told["default"] = default
    if many:
        told |= {"multiple": True} if is_option else {"nargs": -1}
    return click.Option([name, *flags], **told) if is_option else click.Argument([name], **told)


def _told(hint: Any) -> dict[str, Any]:
    """What a type and the words beside it tell click: of files, of a few words, of yes or no, of several of these."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    match get_origin(hint):
        case typing.Annotated:
            told = _told(parts[0])
            for each in parts[1:]:
                told |= _beside(each)
            return told
        case types.UnionType | typing.Union if len(parts) == 1:
            return _told(parts[0])
        case builtins.tuple:
            return {**_told(parts[0]), "many": True}
        case typing.Literal:
            return {"type": click.Choice(parts)}
        case _ if hint is bool:
            return {"is_flag": True}
        case _:
            return {"type": click.Path(path_type=Path) if hint is Path else hint} if hint in (Path, int, float) else {}


def _beside(told: Any) -> dict[str, Any]:
    match told:
        case str() if told.startswith("--"):
            flags = [word for word in told.split() if word.startswith("--")]
            stands_for = told.split()[len(flags) :]
            return {"flags": flags, "metavar": stands_for[0]} if stands_for else {"flags": flags}
        case str():
            return {"metavar": told} if told == told.upper() else {"help": told}
        case dict():
            return cast(dict[str, Any], told)
        case _:
            return {"type": told}


class Word(click.Choice[str]):
    """A choice among words of ours, however they are joined: `near-miss` is `near_miss`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value.replace("-", "_"), param, ctx)


def _once(ctx: click.Context, param: click.Parameter, value: tuple[Any, ...]) -> Any:
    """An option that may be given once: of two, one would be taken without a word."""
    if len(value) > 1:
        raise UsageError(f"{param.opts[0]} was given {len(value)} times", hint="give it once")
    return value[0] if value else None


def pack_name(out: Path) -> str:
    """What a pack is called after its folder."""
    return re.sub(r"[^a-z0-9]+", "-", out.resolve().name.lower()).strip("-") or "pack"


File = Annotated[Path | None, "FILE"]
GivenFile = Annotated[File, click.Path(path_type=Path, exists=True, dir_okay=False)]
Folder = Annotated[Path | None, "DIR"]
Name = Annotated[str, "NAME"]
Count = Annotated[int, "N", click.IntRange(min=1)]
Port = Annotated[int, click.IntRange(0, 65535), "Port to listen on; 0 takes a free one."]
Json = Annotated[bool, "--json", "Print JSON."]
Audited = Annotated[Path, "The folder an audit wrote."]
PackOption = Annotated[str, "--pack PACK", "A pack's folder, or the name of one that comes with Bylaw."]
PackArgument = Annotated[str, "A pack's folder, or the name of one that comes with Bylaw."]
DocumentOption = Annotated[
    File, "The policy document, where the pack only names it.", {"callback": _once, "multiple": True}
]
EarlierPacks = Annotated[tuple[str, ...], "--earlier PACK", "An older version that open conversations may still use."]
