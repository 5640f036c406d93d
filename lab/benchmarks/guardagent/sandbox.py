"""Runs one generated program: reads {code, request, history, call} from stdin, writes {answer, reason} to stdout.

The program is run in a process of its own with limits on time, memory, files and processes, as GuardAgent does not
provide one. It is no boundary against hostile code: the programs are written by the readers.
"""

import builtins
import importlib
import json
import resource
import sys

MODULES = {
    "collections", "datetime", "decimal", "fnmatch", "json", "posixpath", "re", "shlex", "sqlglot", "urllib",
}  # fmt: skip
SECONDS, BYTES = 5, 1 << 30


def main() -> None:
    given = json.load(sys.stdin)
    for name in MODULES - {"urllib"}:
        importlib.import_module(name)
    importlib.import_module("sqlglot.expressions")
    importlib.import_module("urllib.parse")
    real = builtins.__import__

    def only_listed(name: str, *rest: object, **named: object) -> object:
        caller = rest[0] if rest else None
        is_own = isinstance(caller, dict) and caller.get("__name__") == "guard"
        if is_own and name.partition(".")[0] not in MODULES:
            raise ImportError(f"`{name}` may not be imported")
        return real(name, *rest, **named)  # pyright: ignore[reportArgumentType]

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    names = {name: value for name, value in vars(builtins).items() if name not in ("open", "input", "breakpoint")}
    space = {"__builtins__": {**names, "__import__": only_listed}, "__name__": "guard"}
    exec(compile(given["code"], "guard", "exec"), space)
    answer, reason = space["decide"](given["request"], given["history"], given["call"])  # pyright: ignore[reportCallIssue]
    sys.stdout.write(json.dumps({"answer": answer, "reason": str(reason)}))


if __name__ == "__main__":
    main()
