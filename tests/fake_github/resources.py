"""What the fake serves. A new resource is a file beside this one and a line here."""

from fake_github import (
    apps,
    checks,
    collaborators,
    comments,
    commits,
    issues,
    labels,
    pulls,
    reactions,
    repository,
    teams,
    users,
    workflows,
)
from fake_github.routing import Routes

# A commit's name may have slashes in it, so what stands below a commit comes first.
PEOPLE = (apps, users, teams)
RESOURCES = (*PEOPLE, repository, collaborators, labels, issues, comments, reactions, pulls, checks, commits, workflows)
ROUTES = Routes.joined(resource.ROUTES for resource in RESOURCES)
