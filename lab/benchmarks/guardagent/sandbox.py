"""Runs one generated program: reads {code, request, history, call} from stdin, writes {answer, reason} to stdout.

The program runs in a process of its own, with limits on time, memory and files. This is no boundary against hostile
code, because nobody hostile writes the programs.
"""

import builtins
import importlib
import json
import resource
import sys
from collections.abc import Mapping
from typing import Any

MODULES = {
    "collections", "datetime", "decimal", "fnmatch", "json", "posixpath", "re", "shlex", "sqlglot", "urllib",
}  # fmt: skip
MISSING = {"open", "input", "breakpoint"}
SECONDS, BYTES, FILES = 5, 1 << 30, 64
OWN = "guard"


def import_listed(
    name: str,
    space: Mapping[str, Any] | None = None,
    local: Mapping[str, Any] | None = None,
    wanted: tuple[str, ...] = (),
    level: int = 0,
) -> Any:
    if (space or {}).get("__name__") == OWN and name.partition(".")[0] not in MODULES:
        raise ImportError(f"`{name}` may not be imported")
    return builtins.__import__(name, space, local, wanted, level)


def main() -> None:
    given = json.load(sys.stdin)
    for name in (*MODULES, "sqlglot.expressions", "sqlglot.dialects.postgres", "urllib.parse"):
        importlib.import_module(name)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    names = {name: value for name, value in vars(builtins).items() if name not in MISSING}
    space: dict[str, Any] = {"__builtins__": {**names, "__import__": import_listed}, "__name__": OWN}
    exec(compile(given["code"], OWN, "exec"), space)
    answer, reason = space["decide"](given["request"], given["history"], given["call"])
    sys.stdout.write(json.dumps({"answer": answer, "reason": str(reason)}))


if __name__ == "__main__":
    main()
