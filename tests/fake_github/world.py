"""What there is on the fake: accounts, tokens, repositories and, in each repository, the records of each resource."""

import base64
import hashlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeVar, cast

from fake_github.access import Role, Token
from fake_github.refusals import not_found

Record = TypeVar("Record")


@dataclass
class Account:
    """`login` is spelled as its owner spells it; GitHub finds it in any case and answers with that spelling."""

    id: int
    login: str
    type: Literal["User", "Bot", "Organization"] = "User"
    is_deleted: bool = False


@dataclass
class Team:
    id: int
    organization: Account
    slug: str
    members: dict[str, Literal["active", "pending"]] = field(default_factory=dict)  # by login


@dataclass
class App:
    """A GitHub App. `permissions` are those of its installation, `repositories` where it is installed."""

    id: int
    account: Account  # SLUG[bot]
    public_key: str
    installation: int
    permissions: dict[str, str]
    repositories: tuple[str, ...]


@dataclass
class Repository:
    """A fork has its commits together with what it was forked from, as GitHub has."""

    id: int
    owner: Account
    name: str
    created_at: datetime
    private: bool = False
    has_issues: bool = True
    is_archived: bool = False
    former_names: set[str] = field(default_factory=set)  # whole ones, of which links lead here
    roles: dict[str, Role] = field(default_factory=dict)  # by login
    fork_of: "Repository | None" = None
    default_branch: str = "main"
    pushed_at: datetime | None = None
    branches: dict[str, str] = field(default_factory=dict)  # name -> commit
    tags: dict[str, str] = field(default_factory=dict)
    commits: dict[str, tuple[str, ...]] = field(default_factory=dict)  # commit -> parents
    _tables: defaultdict[type, dict[int, object]] = field(default_factory=lambda: defaultdict(dict))
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def table(self, kind: type[Record]) -> dict[int, Record]:
        """The records of one kind by id or number. Each resource brings a kind of its own."""
        return cast("dict[int, Record]", self._tables[kind])

    def next_number(self) -> int:
        """Issues and pull requests are numbered together."""
        return next(self._numbers)


class Clock:
    """The time on the fake, which a test may put forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def time(self) -> float:
        return time.time() + self._ahead_s

    def now(self) -> datetime:
        """To the second, as GitHub keeps it."""
        return datetime.fromtimestamp(int(self.time()), UTC)

    def advance(self, seconds: float) -> None:
        self._ahead_s += seconds


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.accounts: dict[str, Account] = {}  # by the login in small letters
        self.repositories: list[Repository] = []
        self.tokens: dict[str, Token] = {}
        self._ids = itertools.count(1_000)
        self.ghost: Account | None = None  # who stands for deleted accounts; None where GitHub answers null
        self.teams: list[Team] = []
        self.apps: list[App] = []

    def new_id(self) -> int:
        return next(self._ids)

    def add_account(self, login: str, type: Literal["User", "Bot", "Organization"] = "User") -> Account:
        account = Account(self.new_id(), login, type)
        self.accounts[login.casefold()] = account
        return account

    def add_repository(self, full_name: str, private: bool = False, roles: dict[str, Role] | None = None) -> Repository:
        """With one commit on its default branch."""
        owner, name = full_name.split("/")
        repository = Repository(
            self.new_id(), self.account(owner), name, self.clock.now(), private, roles=dict(roles or {})
        )
        self.repositories.append(repository)
        self.push(repository, repository.default_branch)
        return repository

    def fork(self, repository: Repository, owner: str) -> Repository:
        fork = Repository(
            self.new_id(),
            self.account(owner),
            repository.name,
            self.clock.now(),
            repository.private,
            fork_of=repository,
            pushed_at=repository.pushed_at,
            branches=dict(repository.branches),
            commits=repository.commits,
        )
        self.repositories.append(fork)
        return fork

    def push(self, repository: Repository, branch: str, *parents: str, commit: str | None = None) -> str:
        """A new commit, or `commit`, as the end of a branch: by default on top of what is there, or of the default
        branch. Returns the commit."""
        if commit is None:
            below = repository.branches.get(branch) or repository.branches.get(repository.default_branch)
            commit = hashlib.sha1(f"commit {self.new_id()}".encode(), usedforsecurity=False).hexdigest()
            repository.commits[commit] = parents or ((below,) if below else ())
        repository.branches[branch] = commit
        repository.pushed_at = self.clock.now()
        return commit

    def delete_repository(self, repository: Repository) -> None:
        self.repositories.remove(repository)

    def add_team(self, name: str, *members: str) -> Team:
        """`name` is ORGANISATION/TEAM."""
        organization, slug = name.split("/")
        team = Team(self.new_id(), self.account(organization), slug, dict.fromkeys(members, "active"))
        self.teams.append(team)
        return team

    def add_token(self, token: Token) -> Token:
        self.tokens[token.value] = token
        return token

    def account(self, login: str) -> Account:
        account = self.accounts.get(login.casefold())
        if account is None or account.is_deleted:
            raise not_found()
        return account

    def delete_account(self, login: str) -> None:
        """What it has written stays, without an author."""
        self.account(login).is_deleted = True

    def repository(self, owner: str, name: str) -> Repository:
        wanted = f"{owner}/{name}".casefold()
        for repository in self.repositories:
            if repository.full_name.casefold() == wanted:
                return repository
        raise not_found()

    def repository_once_called(self, owner: str, name: str) -> Repository | None:
        wanted = f"{owner}/{name}".casefold()
        for repository in self.repositories:
            if wanted in (former.casefold() for former in repository.former_names):
                return repository
        return None

    def repository_of_id(self, id: int) -> Repository:
        for repository in self.repositories:
            if repository.id == id:
                return repository
        raise not_found()


def node_id(kind: str, id: int) -> str:
    return base64.b64encode(f"{kind}:{id}".encode()).decode()


def as_time(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else None
