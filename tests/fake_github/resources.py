"""What the fake serves. A new resource is a file beside this one and a line here."""

from fake_github import comments, issues, labels, repository, users
from fake_github.routing import Routes

RESOURCES = (users, repository, labels, issues, comments)
ROUTES = Routes.joined(resource.ROUTES for resource in RESOURCES)
