"""The score of a night of models that the configuration names the folder of."""

from pathlib import Path

from night_factory import run_of

from bot.conclusion import score
from bot.config import load_config

TEST = "test_eval[mine-cpu-eager]"


def test_a_model_of_ones_own_has_its_part_in_the_score_of_the_night(tmp_path: Path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "__init__.py").touch()
    (tmp_path / "models" / "mine" / "metadata.yaml").write_text(
        "{description: d, category: SPEECH, domain: SYNTHESIS, workload_version: '1'}"
    )
    (tmp_path / "reference.yaml").write_text(f"'{TEST}': {{norm: 1.0}}\n")
    path = tmp_path / "nightly.yaml"
    path.write_text(f"models: [models]\nreference: {tmp_path / 'reference.yaml'}\n")
    night = run_of(1, {TEST: {"latency": 0.5}})
    scored = score(load_config(path), None, night, None)  # neither store nor summary: the reference is a file
    assert scored.problem == ""
    assert scored.score is not None and round(scored.score.total) == 2000
