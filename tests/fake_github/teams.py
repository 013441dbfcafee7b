"""Teams of organisations. A job's own token may not look at any."""

from githubkit_schemas.latest import models

from fake_github.refusals import not_found
from fake_github.routing import Reply, Request, Routes
from fake_github.world import Team, as_time, node_id

ROUTES = Routes()
PATH = "/orgs/{org}/teams/{slug}"


@ROUTES.add(f"GET {PATH}", model=models.TeamFull)
def get_team(request: Request) -> Reply:
    team = _team(request)
    owner, url = team.organization, f"{request.base_url}/organizations/{team.organization.id}/team/{team.id}"
    page = f"https://github.com/orgs/{owner.login}/teams/{team.slug}"
    since = as_time(request.world.clock.now())
    organization = f"{request.base_url}/orgs/{owner.login}"
    return Reply(
        {
            "id": team.id,
            "node_id": node_id("Team", team.id),
            "url": url,
            "html_url": page,
            "name": team.slug,
            "slug": team.slug,
            "description": None,
            "privacy": "closed",
            "permission": "pull",
            "members_url": f"{url}/members{{/member}}",
            "repositories_url": f"{url}/repos",
            "parent": None,
            "members_count": len(team.members),
            "repos_count": 0,
            "created_at": since,
            "updated_at": since,
            "type": "organization",
            "organization": {
                "login": owner.login,
                "id": owner.id,
                "node_id": node_id("Organization", owner.id),
                "url": organization,
                "repos_url": f"{organization}/repos",
                "events_url": f"{organization}/events",
                "hooks_url": f"{organization}/hooks",
                "issues_url": f"{organization}/issues",
                "members_url": f"{organization}/members{{/member}}",
                "public_members_url": f"{organization}/public_members{{/member}}",
                "avatar_url": f"https://avatars.githubusercontent.com/u/{owner.id}?v=4",
                "description": None,
                "has_organization_projects": False,
                "has_repository_projects": False,
                "public_repos": 0,
                "public_gists": 0,
                "followers": 0,
                "following": 0,
                "html_url": f"https://github.com/{owner.login}",
                "type": "Organization",
                "created_at": since,
                "updated_at": since,
                "archived_at": None,
            },
        }
    )


@ROUTES.add(f"GET {PATH}/memberships/{{login}}", model=models.TeamMembership)
def get_membership(request: Request) -> Reply:
    team = _team(request)
    states = {login.casefold(): state for login, state in team.members.items()}
    state = states.get(request.places["login"].casefold())
    if state is None:
        raise not_found()
    url = f"{request.base_url}/organizations/{team.organization.id}/team/{team.id}/memberships"
    return Reply({"url": f"{url}/{request.places['login']}", "role": "member", "state": state})


def _team(request: Request) -> Team:
    """Who is not of the organisation sees none of its teams."""
    wanted = f"{request.places['org']}/{request.places['slug']}".casefold()
    teams = request.world.teams
    team = next((one for one in teams if f"{one.organization.login}/{one.slug}".casefold() == wanted), None)
    account = request.account
    if request.token is not None and not request.token.allows("members", "read"):
        raise request.token.not_accessible(("members", "read"))
    if team is None:
        raise not_found()
    mine = [one for one in teams if one.organization is team.organization and account.login in one.members]
    if not mine and account is not team.organization and not (request.token and request.token.kind == "installation"):
        raise not_found()
    return team
