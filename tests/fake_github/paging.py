"""Pages of a listing, and the Link header that leads through them. Like GitHub's, its addresses name the repository by
its id."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

_PER_PAGE, _MOST_PER_PAGE = 30, 100


def page_of(items: Sequence[Any], query: dict[str, str], url: str) -> tuple[list[Any], dict[str, str]]:
    """The page that `query` asks for, and its headers. A number that is none counts as none given."""
    per_page = min(_number(query.get("per_page"), _PER_PAGE), _MOST_PER_PAGE)
    page = _number(query.get("page"), 1)
    last = max(-(-len(items) // per_page), 1)
    links = []
    if page > 1:
        links += [("prev", page - 1), ("first", 1)]
    if page < last:
        links += [("next", page + 1), ("last", last)]
    link = ", ".join(f'<{url}?{urlencode({**query, "page": number})}>; rel="{name}"' for name, number in links)
    return list(items[(page - 1) * per_page : page * per_page]), {"Link": link} if link else {}


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else default
