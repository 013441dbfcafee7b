"""What GitHub says when it does not do what was asked, in its own words."""

from typing import Any

DOCUMENTATION = "https://docs.github.com/rest"


class Refusal(Exception):
    """An answer other than success. `errors` makes it GitHub's ValidationError, without them it is a BasicError."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: list[dict[str, Any]] | None = None,
        headers: dict[str, str] | None = None,
        documentation: str = DOCUMENTATION,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.content: dict[str, Any] = {"message": message, "documentation_url": documentation}
        if errors is None:
            self.content["status"] = str(status)
        else:
            self.content["errors"] = errors
        self.headers = headers or {}


def not_found() -> Refusal:
    """Also for what the caller may not see: GitHub does not tell that from what is not there."""
    return Refusal(404, "Not Found")


def moved(url: str, method: str) -> Refusal:
    """For what is asked of a repository by a name that it once had."""
    status, said = (301, "Moved Permanently") if method == "GET" else (307, "Temporary Redirect")
    refusal = Refusal(status, said, headers={"Location": url})
    refusal.content["url"] = url
    return refusal


def must_administrate() -> Refusal:
    return Refusal(403, "Must have admin rights to Repository.")


def unreadable(problem: str) -> Refusal:
    """A body of the wrong shape."""
    return Refusal(422, f"Invalid request.\n\n{problem}")


def invalid(resource: str, field: str, code: str, message: str | None = None, value: object = None) -> Refusal:
    """A body of the right shape that says what cannot be. `code` is GitHub's: missing_field, already_exists, …"""
    error: dict[str, Any] = {"resource": resource, "field": field, "code": code}
    if message is not None:
        error["message"] = message
    if value is not None:
        error["value"] = value
    return Refusal(422, "Validation Failed", [error])


def too_long(resource: str, field: str, text: str | None, longest: int) -> None:
    """Refuses a text of more than `longest` characters."""
    if text is not None and len(text) > longest:
        raise invalid(resource, field, "custom", f"{field} is too long (maximum is {longest} characters)")
