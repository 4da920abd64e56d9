"""`--against`: which version is meant, what has an opponent, and that no end of a run leaves anything behind."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kmrun.cli import running
from kmrun.cli.against_version import AgainstVersion
from kmrun.cli.companion import Suite
from kmrun.cli.other_version import against_version
from kmrun.cli.running import check_suites
from kmrun.errors import EnvironmentLacks, UsageError
from support.cases import CPU, make_found
from support.repositories import commit, git, make_repository
from support.supervisors import FakeSupervisor

SUITE = """
kmrun: 1
suite: adding
{keys}
kernels:
  - name: add
    target: k.py:add
    reference: torch:add
    matrix: {{n: [{sizes}]}}
    args: {{x: {{init: randn, shape: [n, 1024], dtype: fp32}}, y: {{init: {y}, like: x}}}}
    contract:
      - {{max_slowdown: 0.03}}
"""
KERNEL = "def add(x, y):\n    return x + y\n"


def suite(sizes="64, 128", y="randn", keys=""):
    return SUITE.format(sizes=sizes, y=y, keys=keys)


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A repository whose suite changed since its first commit, in which the test stands."""
    root = make_repository(tmp_path / "code", {"suites/s.yaml": suite("64, 32"), "suites/k.py": KERNEL})
    git(root, "tag", "v1")
    commit(root, {"suites/s.yaml": suite()})
    monkeypatch.chdir(root)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return root


def matchup(asked, build="", words=("suites/s.yaml",)):
    said = []
    with against_version(check_suites(words), asked, build, said.append) as companion:
        (found,) = companion.matchups.values()
    return found, said


def opened(companion: AgainstVersion, cases) -> Suite:
    ((folder, name, file),) = companion.matchups
    taken = Suite(name, file, Path(folder), cases, CPU, None, {})
    companion.open(taken)
    return taken


def test_a_commit_has_its_own_suite_and_is_named_with_its_hash(code):
    short = git(code, "rev-parse", "v1")[:9]
    found, _ = matchup("v1")
    assert found.name == f"v1 ({short})"
    assert list(found.cases) == ["add[n=64]", "add[n=32]"]
    assert found.own.root == str(code)
    assert found.other.root.endswith("/tree")
    assert {case.folder for case in found.cases.values()} == {f"{found.other.root}/suites"}
    assert found.own.caches != found.other.caches
    assert matchup(short)[0].name == short
    assert not Path(found.other.root).exists()


def test_what_only_one_version_has_is_listed_and_the_error_rate_is_shared(code):
    said = []
    planned = check_suites(["suites/s.yaml"])
    cases = planned[0].expansion.cases
    with against_version(planned, "v1", "", said.append) as companion:
        taken = opened(companion, cases)
        both, only_here = (companion.opponent(taken, case) for case in cases)
        assert only_here is None
        assert (both.gate.margin, both.gate.alpha) == (0.03, 0.01)
        assert companion.decisions(taken) == 1
        labelled = companion.measured(taken, cases[1], make_found(), None, None, print)
        assert labelled.labels == (f"not compared: not the same case in {both.gate.against}",)
        assert companion.measured(taken, cases[0], make_found(), None, None, print) == make_found()
    assert said == [
        f"warning: 1 case not in {both.gate.against}: add[n=128]\n",
        f"warning: 1 case only in {both.gate.against}: add[n=32]\n",
    ]


def test_what_was_not_chosen_or_is_for_another_device_is_not_called_missing(code, kmrun, monkeypatch):
    rows = (
        suite()
        .replace("    matrix:", "    cases: [{device: cpu, m: 1}, {device: gpu, m: 2}]\n    matrix:")
        .replace("1024]", "1024 * m]")
    )
    commit(code, {"suites/s.yaml": rows})
    git(code, "tag", "rows")
    commit(code, {"suites/s.yaml": rows.replace(", {device: gpu, m: 2}", "").replace("64, 128", "64")})
    monkeypatch.setattr(running, "make_supervisor", lambda *given: FakeSupervisor())
    for options in ([], ["-k", "n=64"]):
        warnings = [
            line
            for line in kmrun("suites/s.yaml", "--against", "rows", *options).err.splitlines()
            if "only in" in line
        ]
        assert [line.rpartition(": ")[2] for line in warnings] == ["add[m=1,n=128]"]


def test_suites_of_one_name_in_a_folder_are_each_compared_with_their_own(code, kmrun, monkeypatch):
    commit(code, {"suites/t.yaml": suite("16").replace("name: add", "name: plus")})
    fake = FakeSupervisor()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: fake)
    ran = kmrun("suites", "--against", "HEAD")
    assert (ran.code, ran.err) == (0, "")
    compared = [asked[0] for asked in fake.asked if isinstance(asked, tuple) and asked[0][-1] == "]"]
    assert compared == ["add[n=64]", "add[n=128]", "plus[n=16]"]


def test_a_suite_is_not_compared_with_itself(code):
    """Nothing is ever slower than itself: a variable that names the wrong folder must not look like a pass."""
    (code / "around").symlink_to(".")
    for asked in (".", str(code), "suites", "suites/s.yaml", "around"):
        with pytest.raises(UsageError, match="is the tree that the suite itself lies in"):
            matchup(asked)
    (code / "suites" / "old.yaml").write_text(suite("64"))
    assert list(matchup("suites/old.yaml")[0].cases) == ["add[n=64]"]


def test_a_branch_and_a_folder_of_one_name_are_told_apart(code):
    git(code, "branch", "fix/one")
    (code / "fix" / "one").mkdir(parents=True)
    (code / "fix" / "one" / "k.py").write_text(KERNEL)
    with pytest.raises(UsageError, match="a commit and a path of that name"):
        matchup("fix/one")
    assert matchup("./fix/one")[0].other.root == str(code / "fix" / "one")


def test_a_version_that_asks_for_no_build_is_not_held_up_by_one(code):
    """Who brings in a build could never compare: what was there before has nothing to be built from."""
    commit(code, {"suites/s.yaml": suite(keys="build: test -f csrc.txt"), "csrc.txt": ""})
    found, said = matchup("v1")
    assert found.cases
    assert "v1 (" in said[-1]
    assert "asks for no build, and is compared as it is: `test -f csrc.txt` failed in" in said[-1]
    with pytest.raises(EnvironmentLacks, match="failed in"):
        matchup("v1", build="test -f csrc.txt")
    commit(code, {"suites/s.yaml": suite(keys="build: test -f more.txt"), "more.txt": ""})
    (code / "csrc.txt").unlink()
    commit(code, {})
    assert matchup("HEAD~1")[0].cases  # built there as that version asks
    (code / "more.txt").unlink()
    with pytest.raises(EnvironmentLacks, match=f"failed in {code} "):
        matchup("v1")


def test_a_version_whose_suite_is_invalid_is_not_built(code):
    commit(code, {"suites/s.yaml": suite(keys="build: false").replace("target:", "tarjet:")})
    commit(code, {"suites/s.yaml": suite(keys="build: pwd >> built")})
    found, said = matchup("HEAD~1")
    assert found.broken
    assert said == [f"building {code}: pwd >> built\n"]


def test_other_arguments_are_no_comparison(code):
    commit(code, {"suites/s.yaml": suite(y="ones")})
    said = []
    planned = check_suites(["suites/s.yaml"])
    with against_version(planned, "HEAD~1", "", said.append) as companion:
        taken = opened(companion, planned[0].expansion.cases)
        assert companion.decisions(taken) == 0
    assert "2 cases called with other arguments in HEAD~1" in said[0]


def test_a_suite_that_the_other_version_lacks_holds_for_both(code):
    (code / "suites" / "new.yaml").write_text(suite())
    found, _ = matchup("HEAD", words=["suites/new.yaml"])
    assert list(found.cases) == ["add[n=64]", "add[n=128]"]
    assert found.cases["add[n=64]"].folder == f"{found.other.root}/suites"


@pytest.mark.parametrize("where", ["checkout", "checkout/suites", "checkout/suites/s.yaml"])
def test_a_path_is_another_checkout_a_folder_or_a_suite(code, tmp_path, where, monkeypatch):
    for name, text in (("s.yaml", suite("32")), ("k.py", KERNEL)):
        (tmp_path / "checkout" / "suites").mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / "suites" / name).write_text(text)
    found, _ = matchup(f"../{where}")
    assert found.name == f"../{where}"
    assert list(found.cases) == ["add[n=32]"]
    assert found.cases["add[n=32]"].folder == str(tmp_path / "checkout" / "suites")
    assert str(tmp_path / "checkout").startswith(found.other.root[: len(str(tmp_path / "checkout"))])


def test_an_installed_copy_is_a_path_without_the_suite(code, tmp_path):
    (tmp_path / "site" / "pack").mkdir(parents=True)
    (tmp_path / "site" / "pack" / "__init__.py").write_text(KERNEL)
    (code / "suites" / "s.yaml").write_text(suite().replace("k.py:", "pack.ops:"))
    found, _ = matchup(str(tmp_path / "site"))
    assert found.other.root == str(tmp_path / "site")
    assert list(found.cases) == ["add[n=64]", "add[n=128]"]


def test_what_is_no_version_is_told(code):
    with pytest.raises(UsageError, match="no such commit, branch, tag or path") as missing:
        matchup("v9")
    assert "shallow clone" in missing.value.hint
    (code / "v1").mkdir()
    (code / "v1" / "k.py").write_text(KERNEL)
    with pytest.raises(UsageError, match="a commit and a path of that name") as both:
        matchup("v1")
    assert both.value.hint == "write ./v1 for the path"
    assert matchup("./v1")[0].other.root == str(code / "v1")


def test_a_folder_in_no_repository_is_told(code, tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "s.yaml").write_text(suite())
    monkeypatch.chdir(tmp_path / "plain")
    with pytest.raises(UsageError, match=f"no such path, and {tmp_path}/plain is in no repository") as told:
        matchup("HEAD", words=["s.yaml"])
    assert told.value.hint == "PATH may be any folder"
    monkeypatch.setenv("GIT_DIR", str(code / ".git"))
    with pytest.raises(UsageError) as told:
        matchup("HEAD", words=["s.yaml"])
    assert told.value.hint == "GIT_DIR is not followed, PATH may be any folder"


def test_build_runs_in_both_trees_and_env_names_each(code):
    keys = "build: pwd > $PLACE\nenv: {PLACE: '{root}/built', MODE: fast}"
    commit(code, {"suites/s.yaml": suite(keys=keys)})
    planned = check_suites(["suites/s.yaml"])
    said = []
    with against_version(planned, "HEAD", "", said.append) as companion:
        (found,) = companion.matchups.values()
        for tree in (found.own.root, found.other.root):
            assert Path(tree, "built").read_text().strip() == tree
        case = found.cases["add[n=64]"]
        assert case.implementation.env == {"PLACE": f"{found.other.root}/built", "MODE": "fast"}
        assert case.reference.implementation.env == case.implementation.env
    assert [line.split(":")[0] for line in said] == [f"building {code}", f"building {found.other.root}"]
    with pytest.raises(EnvironmentLacks, match="`exit 3` failed in"):
        matchup("HEAD", build="exit 3")


def test_each_version_is_built_as_its_own_suite_says(code):
    commit(code, {"suites/s.yaml": suite(keys="build: echo $MODE by make > built\nenv: {MODE: slow}")})
    commit(code, {"suites/s.yaml": suite(keys="build: echo $MODE by ninja > built\nenv: {MODE: fast}")})

    def built(asked, build=""):
        with against_version(check_suites(["suites/s.yaml"]), asked, build, lambda _: None) as companion:
            (found,) = companion.matchups.values()
            return [Path(tree, "built").read_text().strip() for tree in (found.own.root, found.other.root)]

    assert built("HEAD~1") == ["fast by ninja", "slow by make"]
    assert built("v1") == ["fast by ninja", "fast by ninja"]  # which had no build of its own
    assert built("HEAD~1", build="echo $MODE by hand > built") == ["fast by hand", "slow by hand"]


def test_the_command_gives_each_case_its_opponent(code, kmrun, monkeypatch):
    fake = FakeSupervisor()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: fake)
    ran = kmrun("suites/s.yaml", "--against", "v1")
    assert ran.code == 0
    asked = [one for one in fake.asked if isinstance(one, tuple) and one[0] == "add[n=64]"]
    assert asked[0][1].case.implementation.target == "k.py:add"
    assert "add[n=128]" in fake.asked
    assert "not compared: not the same case in v1" in ran.out
    assert ran.err.startswith("warning: 1 case not in v1")


def test_options_that_do_not_go_together(code, kmrun):
    assert kmrun("suites/s.yaml", "--build", "make").code == 2
    both = kmrun("suites/s.yaml", "--against", "v1", "--against-baseline")
    assert (both.code, "--against-baseline and --against at once" in both.err) == (2, True)


def test_a_value_left_empty_by_a_variable_is_refused(code, kmrun):
    for given in (["--against", ""], ["--against", "v1", "--build", ""], ["--build", ""], ["--card", ""]):
        ran = kmrun("suites/s.yaml", *given)
        assert (ran.code, "an empty value" in ran.err) == (2, True)
    for option in (
        "--compare",
        "--save",
        "--junit",
        "--markdown",
        "--html",
        "--device",
        "--isolation",
        "--tag",
        "-k",
    ):
        assert kmrun("suites/s.yaml", option, "").code == 2
    with pytest.raises(UsageError, match="an empty name is no version"):
        matchup("")


def test_a_suite_that_was_broken_does_not_block_its_repair(code, kmrun, monkeypatch):
    commit(code, {"suites/s.yaml": suite().replace("target:", "tarjet:")})
    commit(code, {"suites/s.yaml": suite()})
    fake = FakeSupervisor()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: fake)
    ran = kmrun("suites/s.yaml", "--against", "HEAD~1")
    assert ran.code == 0
    assert ran.err.startswith("warning: nothing is compared with HEAD~1")
    assert "its suite there is invalid: HEAD~1" in ran.err
    assert "suites/s.yaml:7:5: " in ran.err
    assert "not compared: the suite is invalid in HEAD~1" in ran.out
    assert {"add[n=64]", "add[n=128]"} <= {one for one in fake.asked if isinstance(one, str)}


def test_what_is_named_itself_and_is_no_suite_is_refused(code, kmrun):
    (code / "before.yaml").write_text(suite().replace("target:", "tarjet:"))
    ran = kmrun("suites/s.yaml", "--against", "before.yaml")
    assert ran.code == 2
    assert "--against before.yaml: is no valid suite: before.yaml:7:5: " in ran.err
    ran = kmrun("suites/s.yaml", "--against", "suites/k.py")
    assert ran.code == 2
    assert "--against suites/k.py: is no valid suite: suites/k.py:" in ran.err


def test_a_folder_with_nothing_of_the_run_is_refused(code, kmrun, tmp_path, monkeypatch):
    """A mistyped path would hold every contract."""
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "other.py").write_text("")
    ran = kmrun("suites/s.yaml", "--against", str(stranger))
    assert ran.code == 2
    assert (
        f"--against {stranger}: holds neither a suite of this run nor code that one of them names" in ran.err
    )
    # A commit may be older than the suite.
    (code / "suites" / "s.yaml").rename(code / "suites" / "young.yaml")
    assert matchup("v1", words=["suites/young.yaml"])[0].cases
    # One file of either suite's code is enough, and a folder of the suite's name may lie in between.
    (stranger / "k.py").write_text(KERNEL)
    assert matchup(str(stranger), words=["suites/young.yaml"])[0].cases
    # Compiled code is code; nothing is built in a stranger's folder to find out.
    (stranger / "k.py").unlink()
    (code / "suites" / "young.yaml").write_text(suite().replace("k.py:", "fast.ops:"))
    with pytest.raises(UsageError, match="holds neither"):
        matchup(str(stranger), build="touch fast.so", words=["suites/young.yaml"])
    assert not (stranger / "fast.so").exists()
    (stranger / "fast.so").touch()
    assert matchup(str(stranger), words=["suites/young.yaml"])[0].cases


def test_a_folder_that_may_not_be_entered_is_told(code, kmrun, tmp_path, monkeypatch):
    """Whoever runs the tests as root may enter all."""
    locked = tmp_path / "locked"
    locked.mkdir()
    is_file = Path.is_file

    def refused(path):
        if path.is_relative_to(locked) and path != locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    ran = kmrun("suites/s.yaml", "--against", str(locked))
    assert ran.code == 2
    assert f"--against {locked}: {locked / 's.yaml'}: Permission denied" in ran.err


def test_a_suite_that_is_a_link_out_of_the_repository(code, tmp_path):
    (tmp_path / "shared.yaml").write_text(suite())
    (code / "suites" / "link.yaml").symlink_to(tmp_path / "shared.yaml")
    commit(code, {})
    found, _ = matchup("HEAD", words=["suites/link.yaml"])
    assert list(found.cases) == ["add[n=64]", "add[n=128]"]
    assert found.cases["add[n=64]"].folder == f"{found.other.root}/suites"


def test_a_name_that_no_file_system_holds_and_a_repository_of_another_s(code, monkeypatch):
    with pytest.raises(UsageError, match="no such commit"):
        matchup("a" * 300)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UsageError, match="detected dubious ownership in repository at") as refused:
        matchup("v1")
    assert "git config --global --add safe.directory" in refused.value.hint


def test_a_run_inside_a_hook_sees_its_own_repository_and_keeps_its_index(code, monkeypatch):
    (code / "staged.py").write_text("")
    git(code, "add", "staged.py")
    monkeypatch.setenv("GIT_DIR", str(code / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(code / ".git" / "index"))
    with against_version(check_suites(["suites/s.yaml"]), "v1", "", print):
        assert not {"GIT_DIR", "GIT_INDEX_FILE"} & set(os.environ)
    assert os.environ["GIT_DIR"] == str(code / ".git")
    assert git(code, "status", "--porcelain") == "A  staged.py\n"


def traces(code: Path) -> tuple[list[str], list[str], list[str]]:
    """Processes that still work in the run's name, temporary folders, worktrees beside the user's own."""
    tmp = str(code.parent / "tmp")
    living = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if f"TMPDIR={tmp}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    living.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    trees = git(code, "worktree", "list", "--porcelain").split("\n\n")
    return living, [path.name for path in Path(tmp).iterdir()], [tree for tree in trees if tree.strip()][1:]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0.3, 4.0])
def test_a_run_that_is_killed_leaves_no_worktree_process_or_half_a_file(code, number, after_s):
    pytest.importorskip("torch")
    before = git(code, "status", "--porcelain")
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kmrun",
            "suites/s.yaml",
            "--against",
            "v1",
            "--save",
            "../result.json",
            "--quick",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(code.parent / "tmp")},
    ) as run:
        time.sleep(after_s)
        run.send_signal(number)
        run.wait(60)
    deadline = time.monotonic() + 60
    while traces(code) != ([], [], []) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert traces(code) == ([], [], [])
    assert git(code, "status", "--porcelain") == before
    beside = [path.name for path in code.parent.iterdir() if path.name.startswith((".kmrun", "result"))]
    assert set(beside) <= {"result.json"}
    for name in beside:
        assert json.loads((code.parent / name).read_text())["kmrun_result"] == 1
