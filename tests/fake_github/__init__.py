"""A fake of GitHub's REST API for tests: it holds to GitHub's own rules of who may do what and of what is valid, and
githubkit's typed models check each answer of its and each request to it.

One resource is one file with its own ROUTES, registered in resources.py.
"""

from fake_github.access import Token
from fake_github.server import FakeGitHub, fake_github
from fake_github.world import Account, Repository, World

__all__ = ["Account", "FakeGitHub", "Repository", "Token", "World", "fake_github"]
