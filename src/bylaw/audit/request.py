"""What an audit is asked to do, and the conversations it asks about, examined one by one."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bylaw.audit.examine import Examined, Examiner
from bylaw.audit.shelf import Shelf, open_tasks
from bylaw.engine.fault import fault_of
from bylaw.engine.pack import Criterion
from bylaw.engine.session import Mode
from bylaw.errors import BylawError, RecordError
from bylaw.trace import Trajectory, read


class Request(Struct, frozen=True):
    """What to audit, under what, against what."""

    files: tuple[Path, ...]
    pack: str
    world: Path | None = None
    mode: Mode = "hindsight"
    """What stands in for a world where none is given: `hindsight` or `none`."""
    document: Path | None = None
    tasks: Path | None = None
    agent: str | None = None
    jobs: int = 1
    key: bytes | None = None
    """Redact, with pseudonyms made under this key."""
    criterion: Criterion | None = None
    """What tables, findings and the report go by; None for what the pack names, which is `determined` unless it says
    otherwise."""


def open_examiner(request: Request) -> Examiner:
    """Load the pack and open the world of a request."""
    shelf = Shelf(request.pack, world=request.world, document=request.document)
    tasks = open_tasks(shelf, request.tasks) if request.tasks is not None else None
    return Examiner(shelf, mode=request.mode, tasks=tasks, key=request.key)


def examined_in(
    request: Request, examiner: Examiner, share: tuple[int, int] = (0, 1), only: int | None = None
) -> Iterator[Examined | RecordError]:
    """Examine the share (`k` of `n`, by position) of the conversations in the files, or in one of them, in order."""
    for file in request.files if only is None else request.files[only : only + 1]:
        try:
            for trajectory in read(file, agent=request.agent, share=share):
                yield trajectory if isinstance(trajectory, RecordError) else _examined(examiner, trajectory, file)
        except BylawError as error:
            if share[0] == 0:
                yield RecordError(error.message, place=error.place or str(file), hint=error.hint)


def _examined(examiner: Examiner, trajectory: Trajectory, file: Path) -> Examined | RecordError:
    """One conversation that cannot be judged, by a fault of ours or its own, must not cost those after it."""
    try:
        return examiner.examine(trajectory, file)
    except BylawError as error:
        return RecordError(error.message, place=error.place or f"{file}#{trajectory.position}", hint=error.hint)
    except Exception as error:
        examiner.note(fault_of(error, -1), trajectory, is_private=True)
        place, what = f"{file}#{trajectory.position}", f"could not be judged ({type(error).__name__})"
        return RecordError(what, place=place, hint="a fault of Bylaw's own: please report it with faults.jsonl")
