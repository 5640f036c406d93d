"""The command `bylaw prompt` prints instructions for the system prompt of a shielded agent."""

import msgspec

from bylaw.cli.command import Json, PackArgument, command
from bylaw.pack import load_pack
from bylaw.text.visible import visible


@command("prompt")
def prompt_command(pack: PackArgument, *, as_json: Json = False) -> None:
    """Print instructions for the agent's system prompt.

    The instructions list the writes that need the user's yes, the sentence or card that asks for it, and what to look
    up first.
    """
    from bylaw.shield.instructions import instructions, write_instructions

    held = load_pack(pack, cases=False)
    if as_json:
        writes = msgspec.to_builtins(write_instructions(held))
        told = {"pack": held.name, "version": held.version, "writes": writes, "text": instructions(held)}
        print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    else:
        print(visible(instructions(held)).rstrip() or "no instructions: no write requires a look-up or a confirmation")
