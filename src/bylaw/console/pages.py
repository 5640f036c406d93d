"""All pages of one audit, as `bylaw view` serves them."""
# pyright: basic, reportMissingImports=false

from starlette.types import ASGIApp

from bylaw.console.app import application
from bylaw.console.comparing import ComparePages
from bylaw.console.conversations import ConversationPages
from bylaw.console.findings import FindingPages
from bylaw.console.overview import OverviewPages
from bylaw.console.policies import PolicyPages
from bylaw.console.view import View

PAGES = (OverviewPages, FindingPages, ConversationPages, PolicyPages, ComparePages)


def view_app(view: View) -> ASGIApp:
    """The pages of an audit."""
    return application([route for pages in PAGES for route in pages(view).routes()])
