"""Names of conversations and of the agents they are counted under."""

import re

import msgspec

from bylaw.trace.trajectory import Trajectory

_EXTENSIONS = (".gz", ".json", ".jsonl", ".ndjson", ".eval", ".log", ".txt")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_PART = re.compile(r"\.\d+$")


class Identities:
    """Gives every trajectory of one audit an id of its own: a repeated one gets `~2`, `~3`, ...

    Feed it trajectories in the order of files and conversations; the outcome depends on nothing else.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, id: str) -> str:
        """`id`, or `id~N` where it was given out before."""
        count = self._seen.get(id, 0) + 1
        self._seen[id] = count
        if count == 1:
            return id
        while (candidate := f"{id}~{count}") in self._seen:
            count += 1
        self._seen[id] = count
        self._seen[candidate] = 1
        return candidate

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def own(self, trajectory: Trajectory) -> Trajectory:
        """`trajectory` under an id that no other one has."""
        id = self.unique(trajectory.id)
        return trajectory if id == trajectory.id else msgspec.structs.replace(trajectory, id=id)


def agent_of_file(name: str) -> str:
    """The file's name without extensions and a trailing `.N`."""
    while name.lower().endswith(_EXTENSIONS):
        name = name[: name.rindex(".")]
    return _PART.sub("", name)


def agent_of_model(model: str) -> str:
    """A model's name without its provider; a fine-tune is `ft-` and the model it was made from."""
    name = model.rsplit("/", 1)[-1]
    if name.startswith("ft:"):
        base = name.split(":")[1]
        return f"ft-{_DATE.sub('', base)}"
    return name
