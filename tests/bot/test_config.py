"""The nightly's configuration: defaults, paths, and what is said of mistakes."""

from pathlib import Path

import pytest

from baselines.policy import load_policy
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


def test_owners_are_a_list_or_lists_by_glob(tmp_path):
    assert config(tmp_path, 'owners: {"hf_*": ["@a"], "*": ["@b"]}\n').owners == {"hf_*": ("@a",), "*": ("@b",)}
    for wrong in ('"@a"', '{"hf_*": "@a"}', "3", "[3]"):
        with pytest.raises(BotError, match=r"key owners.*: expected "):
            config(tmp_path, f"owners: {wrong}\n")


def test_the_configuration_of_the_workflow_is_valid(monkeypatch):
    monkeypatch.setenv("TORCHBENCH_STORE", "s3://bucket/prefix")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    loaded = load_config(Path(__file__).parents[2] / ".github" / "torchbench.yml")
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


INLINE = """\
suite: smoke
policy:
  name: ours
  per_test: 0.05
  judged:
    cpu:
      - {channel: cpu_time, statistic: p20}
      - {channel: latency, statistic: median}
"""


def test_a_policy_may_stand_in_the_configuration_itself(tmp_path):
    loaded = config(tmp_path, INLINE)
    assert load_policy(loaded.policy) == loaded.policy
    assert (loaded.policy.name, loaded.policy.per_test, loaded.policy.nights) == ("ours", 0.05, 7)
    assert [one.channel for one in loaded.policy.for_device("cpu")] == ["cpu_time", "latency"]
    (tmp_path / "policy.yaml").write_text("name: file\njudged: {cpu: [{channel: latency, statistic: median}]}\n")
    assert load_policy(config(tmp_path, "policy: policy.yaml\n").policy).name == "file"


@pytest.mark.parametrize(
    ("wrong", "said", "line"),
    [
        (("0.05", "5 %"), "key policy.per_test: expected a number, found the text '5 %'", 4),
        (("per_test", "pertest"), "unknown key policy.pertest; did you mean per_test?", 4),
        (("median", "mode"), "key policy.judged.cpu.1.statistic: expected p20, median or mean, found", 8),
        (("name: ours", "nights: 3"), "key policy.name: is missing", 2),
        (("cpu:", "tpu:"), "key policy.judged.tpu: expected cpu or cuda, found the text 'tpu'; did you", 6),
    ],
)
def test_a_mistake_deep_inside_is_told_with_its_line(tmp_path, wrong, said, line):
    with pytest.raises(BotError) as error:
        config(tmp_path, INLINE.replace(*wrong))
    assert f"nightly.yaml: {said}" in str(error.value) and str(error.value).endswith(f"(line {line})")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy: 3\n", "key policy: expected text, found the number 3; put it in quotes (line 1)"),
        (
            "suite: smoke\npull_requests:\n  teams:\n  - org/one\n  - two\n",
            "key pull_requests.teams.1: expected organisation/team, without an @, found the text 'two' (line 5)",
        ),
        (
            "runners:\n  measuring: [self-hosted, gpu]\n  second:\n    - any\n    - gpu 2\n",
            "key runners.second.1: expected one label of letters, digits, dots, - and _, found the text "
            "'gpu 2' (line 5)",
        ),
        ("github: acme\n", "key github: expected OWNER/NAME, found the text 'acme' (line 1)"),
        (
            'pull_requests: {teams: ["@a/b"]}\n',
            "key pull_requests.teams.0: expected organisation/team, without an @, found the text '@a/b' (line 1)",
        ),
        ("runners: {shards: none}\n", "key runners.shards: expected a whole number, found the text 'none' (line 1)"),
        ("runners:\n  gpu: [a]\n", "unknown key runners.gpu; known: measuring, second, building, shards (line 2)"),
        ("owners:\n\n- one\n- 2\n", "key owners.1: expected text, found the number 2; put it in quotes (line 4)"),
        (
            "owners:\n  '[ab]*':\n  - 2\n",
            "key owners.[ab]*.0: expected text, found the number 2; put it in quotes (line 3)",
        ),
        ("owners: me\n", "key owners: expected a list, found the text 'me'; write [me] (line 1)"),
    ],
)
def test_a_mistake_in_a_list_is_told_with_the_line_of_the_entry(tmp_path, text, said):
    with pytest.raises(BotError) as error:
        config(tmp_path, text)
    assert str(error.value).endswith(f"nightly.yaml: {said}")
