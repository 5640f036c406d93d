"""All pages of one audit, as `bylaw view` serves them."""
# pyright: basic, reportMissingImports=false

from starlette.types import ASGIApp

from bylaw.console.app import application
from bylaw.console.findings import FindingPages
from bylaw.console.view import View


def view_app(view: View) -> ASGIApp:
    """The pages of an audit."""
    return application(FindingPages(view).routes())
