"""Finding the other version of suites: a commit checked out for the run, or a folder that is there already."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kmrun.cli.against_version import AgainstVersion, Matchup
from kmrun.cli.app import explained
from kmrun.cli.companion import Key
from kmrun.core.case import Case, Implementation
from kmrun.core.opponent import Tree
from kmrun.errors import UsageError
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.paths import exists
from kmrun.source.suite_plan import PlannedSuite, read_and_plan
from kmrun.store.packages import code_in
from kmrun.store.repository import LOCAL_VARIABLES, commit_named, refusal, toplevel
from kmrun.store.worktree import BuildFailed, Workshop

ROOT = "{root}"
"""Stands for the tree of a version in the values of a suite's `env:`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suite's other version lies; `suite` is None where that version has no such file.

    `kind` says what was named: a commit, a folder, or the suite's file itself.
    """

    name: str
    own: Path
    other: Path
    suite: Path | None
    kind: Literal["commit", "folder", "suite"] = "folder"


@contextlib.contextmanager
def against_version(
    planned: Sequence[PlannedSuite], asked: str, build: str, say: Callable[[str], None]
) -> Iterator[AgainstVersion]:
    """Bring up the other version of all suites for the length of a run, and leave nothing of it behind.

    Args:
        planned: the suites as they are here.
        asked: a commit, branch, tag, or a path.
        build: a command to run in each tree in place of the suites' own.
        say: tells a person what takes a while.

    Raises:
        UsageError: there is no such version, or it is both a commit and a path.
        EnvironmentLacks: git or a build failed.
    """
    if not asked:
        raise UsageError("--against: an empty name is no version", "a variable that is not set leaves that")
    find = _finder(planned, asked)
    with _no_hook_s_repository(), Workshop() as workshop:
        places = {item.read.path: find(item, workshop) for item in planned}
        caches = {which: Path(workshop.folder, "caches", which) for which in ("new", "old")}
        for folder in caches.values():
            folder.mkdir(parents=True)
        others = {path: _other(place) for path, place in places.items()}
        matchups: dict[Key, Matchup] = {
            (
                str(item.read.path.parent.resolve()),
                item.read.suite.suite,
                item.read.document.source.name,
            ): _matchup(item, places[item.read.path], others[item.read.path], caches)
            for item in planned
        }
        # Before anything is built: a command must not be run in a folder that was only mistyped.
        _refuse_strangers(list(places.values()), list(matchups.values()))
        _build(planned, places, others, build, workshop, say)
        yield AgainstVersion(matchups=matchups, say=say)


@contextlib.contextmanager
def _no_hook_s_repository() -> Iterator[None]:
    """Keep from builds and sides what a git hook inherits: it would send git in either tree to one repository."""
    taken = {name: os.environ.pop(name) for name in LOCAL_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


def _location(item: PlannedSuite) -> Path:
    """Return where a suite lies; a symbolic link lies where it is, not where it leads."""
    return item.read.path.parent.resolve() / item.read.path.name


def _finder(planned: Sequence[PlannedSuite], asked: str) -> Callable[[PlannedSuite, Workshop], Place]:
    """Return what finds a suite's other version, settled before anything is made."""
    path = Path(asked)
    folders = {toplevel(item.read.path.parent): item.read.path.parent for item in planned}
    roots = set(folders)
    commits = {root: commit_named(root, asked) for root in roots if root is not None}
    is_commit = bool(commits) and all(commits.values()) and None not in roots
    if exists(path) and is_commit:
        raise UsageError(
            f"--against {asked}: a commit and a path of that name", f"write ./{asked} for the path"
        )
    if exists(path):
        return lambda item, _: _other_than_own(_in_path(_location(item), path.resolve(), asked), item)
    if not is_commit:
        refused = refusal(folders[None]) if None in folders else ""
        if refused:
            sentence, *hint = refused.splitlines()
            raise UsageError(f"--against {asked}: {sentence}", " ".join(" ".join(hint).split()))
        if None in roots:
            followed = "GIT_DIR is not followed, " if "GIT_DIR" in os.environ else ""
            where = f"{folders[None].resolve()} is in no repository"
            raise UsageError(
                f"--against {asked}: no such path, and {where}", f"{followed}PATH may be any folder"
            )
        shallow = "a shallow clone lacks earlier commits: fetch them first"
        raise UsageError(f"--against {asked}: no such commit, branch, tag or path", shallow)
    if len(commits) > 1:
        raise UsageError(
            f"--against {asked}: the suites lie in {len(commits)} repositories", "run them apart"
        )
    ((root, commit),) = commits.items()
    made: list[Path] = []

    def in_commit(item: PlannedSuite, workshop: Workshop) -> Place:
        if not made:
            made.append(workshop.worktree(root, commit or ""))
        short = (commit or "")[:9]
        name = asked if (commit or "").startswith(asked) else f"{asked} ({short})"
        suite = made[0] / _location(item).relative_to(root)
        return Place(name, root, made[0], suite if suite.is_file() else None, "commit")

    return in_commit


def _in_path(suite: Path, path: Path, asked: str) -> Place:
    """Find the counterpart of a suite below a path: the innermost folder around both that fits.

    Raises:
        UsageError: nobody may look there.
    """
    own_root = toplevel(suite.parent)
    if path.is_file():
        return Place(asked, own_root or suite.parent, toplevel(path.parent) or path.parent, path, "suite")
    for folder in suite.parents:
        candidate = path / suite.relative_to(folder)
        try:
            is_there = candidate.is_file()
        except OSError as error:
            raise UsageError(f"--against {asked}: {candidate}: {error.strerror or error}") from error
        if is_there:
            other_root = toplevel(path)
            if own_root is not None and other_root is not None and own_root != other_root:
                return Place(asked, own_root, other_root, candidate)
            return Place(asked, folder, path, candidate)
        if folder == own_root:
            break
    return Place(asked, own_root or suite.parent, path, None)


def _other_than_own(place: Place, item: PlannedSuite) -> Place:
    """Return the place.

    Raises:
        UsageError: it is where the suite itself lies: compared with itself, nothing is ever slower.
    """
    if place.other == place.own and place.suite is not None and place.suite.samefile(item.read.path):
        hint = "name another checkout, or a commit: HEAD is what was committed last"
        raise UsageError(f"--against {place.name}: is the tree that the suite itself lies in", hint)
    return place


def _other(place: Place) -> PlannedSuite | str | None:
    """Return the suite as it is in the other version: None where it is younger, or why it cannot be read.

    Raises:
        UsageError: it was named itself, and is none.
    """
    if place.suite is None:
        return None
    try:
        within = "" if place.kind == "suite" else f":{place.suite.relative_to(place.other)}"
        return read_and_plan(place.suite, place.name + within)
    except InvalidSuite as invalid:
        wrong = next(each for each in invalid.diagnostics if each.severity == "error")
        if place.kind == "suite":
            raise UsageError(
                f"--against {place.name}: is no valid suite: {wrong.place}: {wrong.message}"
            ) from invalid
        # What repairs a broken suite must not be held up by it.
        return f"its suite there is invalid: {wrong.place}: {wrong.message}"


def _refuse_strangers(places: Sequence[Place], matchups: Sequence[Matchup]) -> None:
    """Refuse a folder that has neither a suite of the run nor code of one: a mistyped name would hold every contract.

    Raises:
        UsageError: it has nothing of any of them.
    """
    if any(place.kind != "folder" or place.suite is not None for place in places):
        return
    targets = {
        (each.other.root, case.folder, case.implementation.target)
        for each in matchups
        for case in each.cases.values()
    }
    if not any(code_in(Path(root), folder, target) for root, folder, target in targets):
        raise UsageError(
            f"--against {places[0].name}: holds neither a suite of this run nor code that one of them names",
            "name another checkout, or the folder that an installed copy lies in",
        )


def _build(
    planned: Sequence[PlannedSuite],
    places: dict[Path, Place],
    others: dict[Path, PlannedSuite | str | None],
    build: str,
    workshop: Workshop,
    say: Callable[[str], None],
) -> None:
    """Run each suite's build command in both trees, each once a tree; a version that has its own is built by that.

    A version that asks for no build may need none: this version's is tried there, and its failing is no obstacle.
    """
    done: set[tuple[str, Path]] = set()

    def make(command: str, root: Path, variables: dict[str, str], asks_not: str = "") -> None:
        if not command or (command, root) in done:
            return
        done.add((command, root))
        say(f"building {root}: {command}\n")
        try:
            workshop.build(command, root, rooted(variables, root))
        except BuildFailed as failed:
            if not asks_not:
                raise
            say(explained(failed, f"warning: {asks_not} asks for no build, and is compared as it is: "))

    for item in planned:
        place, other = places[item.read.path], others[item.read.path]
        suite = item.read.suite
        make(build or suite.build or "", place.own, suite.env)
        if isinstance(other, str):
            continue  # nothing of it is run
        its = other.read.suite if other is not None and other.read.suite.build else suite
        make(build or its.build or "", place.other, its.env, place.name if its is suite and not build else "")


def _matchup(
    item: PlannedSuite, place: Place, there: PlannedSuite | str | None, caches: dict[str, Path]
) -> Matchup:
    own, other = Tree(str(place.own), str(caches["new"])), Tree(str(place.other), str(caches["old"]))
    folder = item.read.path.parent.resolve()
    ours = frozenset(case.id for case in item.expansion.cases)
    if isinstance(there, str):
        return Matchup(place.name, {}, own, other, there, ours)
    if there is not None and place.suite is not None:
        variables, cases = there.read.suite.env, there.expansion.cases
        at = place.suite.parent
    else:
        # The suite is younger than that version: what it says holds for both.
        variables, cases = item.read.suite.env, item.expansion.cases
        within = folder.relative_to(place.own) if folder.is_relative_to(place.own) else Path()
        at = place.other / within if (place.other / within).is_dir() else place.other
    found = {case.id: in_tree(replace(case, folder=str(at)), variables, place.other) for case in cases}
    return Matchup(place.name, found, own, other, ours=ours)


def in_tree(case: Case, variables: dict[str, str], root: Path) -> Case:
    """Return the case with the environment of all its implementations as the suite's `env:` sets it in a tree."""
    if not variables:
        return case
    common = rooted(variables, root)

    def placed(one: Implementation) -> Implementation:
        return replace(one, env={**common, **one.env})

    reference = case.reference and replace(
        case.reference, implementation=placed(case.reference.implementation)
    )
    return replace(
        case,
        implementation=placed(case.implementation),
        reference=reference,
        versus=tuple(placed(each) for each in case.versus),
    )


def rooted(variables: dict[str, str], root: Path) -> dict[str, str]:
    """Return a suite's variables with `{root}` filled in."""
    return {name: value.replace(ROOT, str(root)) for name, value in variables.items()}


def root_of(item: PlannedSuite) -> Path:
    """Return the tree that a suite lies in: its repository's, else its folder."""
    folder = item.read.path.parent.resolve()
    return toplevel(folder) or folder
