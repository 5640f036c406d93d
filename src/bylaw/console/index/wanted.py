"""Which findings a page shows, as its address says it."""

from collections.abc import Iterable
from typing import Literal, get_args
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

State = Literal["new", "still", "open", "attested", "waived", "false-alarm", "refused"]
"""New or known from an earlier audit; undecided (`open`); answered by a person; or of a call that the tool refused."""
STATES: tuple[State, ...] = get_args(State)


class Wanted(Struct, frozen=True, omit_defaults=True):
    """Which findings a page shows; an empty part asks for nothing. Its address says the same."""

    policy: str = ""
    agent: str = ""
    verdict: str = ""
    tool: str = ""
    severity: str = ""
    state: str = "new"
    q: str = ""
    reason: str = ""
    base: str = ""

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> "Wanted":
        given = {name: value.replace("\0", "")[:300] for name, value in query if name in cls.__struct_fields__}
        wanted = cls(**given)
        return wanted if wanted.state in (*STATES, "all") else replace(wanted, state="new")

    def address(self, path: str = "/findings", **changes: str) -> str:
        """The address of a page that wants the same, but."""
        other = {name: value for name, value in changes.items() if name not in self.__struct_fields__}
        wanted = replace(self, **{name: value for name, value in changes.items() if name not in other})
        given = {name: value for name, value in asdict(wanted).items() if value and (name, value) != ("state", "new")}
        query = urlencode(given | {name: value for name, value in other.items() if value}, errors="replace")
        return f"{path}?{query}" if query else path

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the state is asked for."""
        return any((self.policy, self.agent, self.verdict, self.tool, self.severity, self.q))
