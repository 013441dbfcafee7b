"""The nightly's configuration: defaults, paths, and what is said of mistakes."""

from pathlib import Path

import pytest

from bot.config import NightlyConfig, load_config
from bot.errors import BotError


def config(tmp_path: Path, text: str) -> NightlyConfig:
    path = tmp_path / "nightly.yaml"
    path.write_text(text)
    return load_config(path)


def test_paths_are_relative_to_the_file(tmp_path):
    loaded = config(tmp_path, "store: s\nwork: w\noutbox: o\nmodels: [m]\npython: env/bin/python\n")
    assert loaded.store == str(tmp_path / "s")
    assert loaded.work == tmp_path / "w"
    assert loaded.outbox == tmp_path / "o"
    assert loaded.models == (tmp_path / "m",)
    assert loaded.python == tmp_path / "env/bin/python"


def test_a_command_on_the_path_and_a_bucket_stay_as_they_are(tmp_path):
    loaded = config(tmp_path, "python: python3.12\nstore: s3://bucket/prefix\n")
    assert loaded.python == Path("python3.12")
    assert loaded.store == "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rounds: 0\n", "key rounds: expected a number of at least 1, found the number 0"),
        ("siute: smoke\n", "unknown key siute; did you mean suite"),
        ("device: tpu\n", "key device: expected cpu or cuda, found the text 'tpu'"),
        ("suite: [a\n", "nightly.yaml:2: not valid YAML"),
        ("budget_s: .nan\n", "key budget_s"),
        ("- a list\n", "expected keys with values"),
        ("suite: smoke\nsuite: v1\n", "nightly.yaml:2: not valid YAML: key 'suite' stands twice"),
    ],
)
def test_a_mistake_is_told_with_file_and_key_or_line(tmp_path, text, said):
    with pytest.raises(BotError) as error:
        config(tmp_path, text)
    assert said in str(error.value)
    assert "nightly.yaml" in str(error.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(BotError, match=r"absent\.yaml: cannot be read"):
        load_config(tmp_path / "absent.yaml")


def test_the_configuration_of_make_nightly_is_valid():
    loaded = load_config(Path(__file__).parents[2] / "nightly.yaml")
    assert (loaded.suite, loaded.device, loaded.policy) == ("smoke", "cpu", "smoke")


def test_store_and_repository_may_be_named_by_variables_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_STORE", "s3://bucket/prefix")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    loaded = config(tmp_path, "store: $TORCHBENCH_STORE\ngithub: $GITHUB_REPOSITORY\n")
    assert (loaded.store, loaded.github) == ("s3://bucket/prefix", "owner/name")
    for value in ("", " "):
        monkeypatch.setenv("TORCHBENCH_STORE", value)
        with pytest.raises(BotError, match=r"nightly\.yaml: key store: .*the environment has no TORCHBENCH_STORE"):
            config(tmp_path, "store: $TORCHBENCH_STORE\n")
    monkeypatch.setenv("GITHUB_REPOSITORY", "no repository")
    with pytest.raises(BotError, match=r"key github"):
        config(tmp_path, "github: $GITHUB_REPOSITORY\n")
    assert config(tmp_path, "owners: [$TEAM]\n").owners == ("$TEAM",)


def test_the_configuration_of_the_workflow_is_valid(monkeypatch):
    monkeypatch.setenv("TORCHBENCH_STORE", "s3://bucket/prefix")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    loaded = load_config(Path(__file__).parents[2] / ".github" / "nightly.yaml")
    assert (loaded.suite, loaded.device, loaded.github) == ("v1", "cuda", "owner/name")
    assert loaded.build.packages[0] == "torch"


def test_what_is_filed_is_chosen_by_kind_and_a_mistake_names_file_key_and_line(tmp_path):
    loaded = config(tmp_path, "file:\n  severe: confirmed\n  improvement: persistent\n")
    assert (loaded.file.severe, loaded.file.improvement, loaded.file.regression) == (
        "confirmed",
        "persistent",
        "persistent",
    )
    for text, said in (
        (
            "suite: smoke\nfile:\n  regression: at once",
            "key file.regression: expected confirmed, persistent or never, found the text 'at once' (line 3)",
        ),
        ("file: {environment: persistent}", "key file.environment: expected confirmed or never, found the text"),
        ("file: {crash: confirmed}", "unknown key file.crash"),
        ("file: never", "key file: expected"),
    ):
        with pytest.raises(BotError) as error:
            config(tmp_path, text + "\n")
        assert said in str(error.value) and "nightly.yaml" in str(error.value)
