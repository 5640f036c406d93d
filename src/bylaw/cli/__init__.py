"""The command line. Start at `app`. Each command has its own module."""


def main() -> None:
    from bylaw.cli.app import run
    from bylaw.cli.console import on_screen

    with on_screen():
        run()
