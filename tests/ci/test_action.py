"""action.yml: parsed, held to what GitHub reads of it, and its own steps run in a shell as GitHub runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SUITE = """\
kmrun: 1
suite: adding
kernels:
  - name: add
    target: torch:add
    reference: torch:add
    timing: {min_time_ms: 1, max_time_ms: 20, rel_ci: 0.9}
    args:
      x: {init: randn, shape: [64, 64], dtype: fp32}
      y: {init: randn, like: x}
    outputs: {o: {like: x}}
    contract: [{max_ms: 10000}]
"""


@pytest.fixture
def job(tmp_path):
    """A folder with a suite, and a function that runs a step there with inputs."""
    (tmp_path / "adding.yaml").write_text(SUITE)
    (tmp_path / "out").write_text("")

    def run(name, **inputs):
        step = STEPS[name]
        values = {key: str(spec.get("default", "")) for key, spec in ACTION["inputs"].items()} | inputs
        environment = {key: filled(text, values) for key, text in step.get("env", {}).items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path / filled(step["working-directory"], values),
            env={
                **os.environ,
                "PATH": path,
                "GITHUB_OUTPUT": str(tmp_path / "out"),
                **environment,
                **job_environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    job_environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "RUNNER_TEMP": str(tmp_path),
    }
    return run


def filled(text, inputs):
    def value(found):
        expression = found[1].strip()
        return str(ROOT) if expression == "github.action_path" else inputs[expression.removeprefix("inputs.")]

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def test_it_is_a_composite_action_whose_inputs_are_all_used():
    assert ACTION["runs"]["using"] == "composite"
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(ACTION)
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"\binputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    assert all(
        spec["description"] and ("default" in spec or spec["required"]) for spec in ACTION["inputs"].values()
    )
    ids = {step.get("id") for step in ACTION["runs"]["steps"]}
    assert set(re.findall(r"\bsteps\.([\w-]+)", text)) <= ids


@pytest.mark.parametrize("step", ACTION["runs"]["steps"], ids=lambda step: step["name"])
def test_a_step_is_what_github_takes(step):
    assert ("run" in step) != ("uses" in step)
    if "uses" in step:
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])
    else:
        assert step["shell"] == "bash"
        # An expression in a script is text of the script: whoever names a suite would write commands.
        assert "${{" not in step["run"]


def test_the_install_step_takes_this_checkout(job, monkeypatch):
    # A dry run of pip that builds nothing anew: that the path and the extra are understood is what is tested.
    for name in ("PIP_DRY_RUN", "PIP_NO_DEPS", "PIP_DISABLE_PIP_VERSION_CHECK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # pip takes the value of this one the other way round
    done = job("Install kmrun")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Would install kmrun-|already satisfied: kmrun", done.stdout)


def test_a_wrong_suite_stops_the_job_with_annotations(job, tmp_path):
    assert job("Check the suites", suites="adding.yaml").returncode == 0
    (tmp_path / "adding.yaml").write_text(SUITE.replace("randn", "random", 1))
    done = job("Check the suites", suites="adding.yaml")
    assert done.returncode == 2
    assert done.stdout.startswith("::error file=adding.yaml,line=9,")


def test_the_measuring_step_leaves_reports_and_outputs(job, tmp_path):
    done = job("Measure", suites="adding.yaml", options="--quick --allow-inconclusive", results="kept here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (tmp_path / "kept here").iterdir()} == {
        "junit.xml",
        "report.md",
        "result.json",
    }
    outputs = (tmp_path / "out").read_text().splitlines()
    assert outputs == ["exit-code=0", f"results={tmp_path / 'kept here'}"]
    assert "### adding: **pass**" in (tmp_path / "summary.md").read_text()


def test_a_second_use_in_a_job_has_another_artifact_and_its_folder_may_be_absolute(job, tmp_path):
    folder = tmp_path / "else where" / "here"
    for options in ("--nothing", "--nothing"):  # refused at once: what is told of the folder is the same
        done = job("Measure", suites="adding.yaml", options=options, results=str(folder))
        assert done.returncode == 2, done.stdout + done.stderr
    first = ["exit-code=2", f"results={folder}"]
    assert (tmp_path / "out").read_text().splitlines() == [*first, "suffix=-2", *first]
    name = STEPS["Keep the results"]["with"]["name"]
    assert re.fullmatch(r"\$\{\{ inputs\.artifact \|\| format\(.*steps\.run\.outputs\.suffix\) \}\}", name)


def test_no_input_is_a_command(job, tmp_path):
    done = job("Measure", suites='$(touch hacked) ";touch hacked;" nothing.yaml', results="out dir")
    assert done.returncode == 2
    assert not (tmp_path / "hacked").exists()
    assert (tmp_path / "out").read_text().startswith("exit-code=2\n")
