"""The tasks that come with a pack."""

from collections.abc import Sequence

from bylaw.align.scene import Task
from bylaw.errors import UsageError


def load_tasks(part: str, pack: str = "clinic", *, times: int = 1) -> Sequence[Task]:
    """The tasks of one part (training, development, test, rl) of a pack that comes with Bylaw.

    `times` asks for that many times the usual number of tasks of the training or the rl part.
    """
    from bylaw.packs.clinic.tasks import PARTS, scenarios

    if pack != "clinic":
        raise UsageError(f"pack `{pack}` comes with no tasks", hint="`clinic` does")
    if part not in PARTS:
        raise UsageError(f"there is no part `{part}`", hint=f"one of {', '.join(PARTS)}")
    return scenarios(part, times if part in ("training", "rl") else 1)
