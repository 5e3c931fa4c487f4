"""Which code is base and head, in every state a checkout can be in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ci.measure.errors import SideError
from ci.measure.sides import Sides, resolve, tree_digest

SUITE = Path("kernels")


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder: Path, content: str) -> str:
    (folder / SUITE).mkdir(exist_ok=True)
    (folder / SUITE / "file.cu").write_text(content)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", content)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder


def ask(checkout: Path, tmp_path: Path, base: str | None = None, head: str | None = None) -> Sides:
    scratch = tmp_path / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    return resolve(base=base, head=head, suite=SUITE, here=checkout, scratch=scratch)


def content(sides: Sides) -> tuple[str, str | None]:
    base = None if sides.base is None else (sides.base.suite / "file.cu").read_text()
    return (sides.head.suite / "file.cu").read_text(), base


def test_base_is_the_first_parent_on_a_clean_default_branch(checkout: Path, tmp_path: Path) -> None:
    first = commit(checkout, "one")
    second = commit(checkout, "two")
    sides = ask(checkout, tmp_path)
    assert content(sides) == ("two", "one")
    assert sides.base is not None
    assert (sides.base.revision.commit, sides.head.revision.commit) == (first, second)
    assert sides.head.revision.parents == (first,)
    assert sides.head.revision.subject == "two"


def test_base_is_head_where_the_suite_has_uncommitted_changes(
    checkout: Path, tmp_path: Path
) -> None:
    commit(checkout, "one")
    tip = commit(checkout, "two")
    (checkout / SUITE / "file.cu").write_text("three")
    sides = ask(checkout, tmp_path)
    assert content(sides) == ("three", "two")
    assert sides.head.revision.commit.startswith(f"{tip}-dirty-")


def test_an_untracked_kernel_is_a_change_too(checkout: Path, tmp_path: Path) -> None:
    tip = commit(checkout, "one")
    commit(checkout, "two")
    (checkout / SUITE / "new.cu").write_text("x")
    sides = ask(checkout, tmp_path)
    assert content(sides) == ("two", "two")
    assert sides.base is not None
    assert sides.base.revision.commit != tip


def test_a_link_within_the_suite_is_kept(checkout: Path, tmp_path: Path) -> None:
    (checkout / SUITE).mkdir()
    (checkout / SUITE / "again.cu").symlink_to("file.cu")
    commit(checkout, "one")
    sides = ask(checkout, tmp_path, base="HEAD", head="HEAD")
    assert (sides.head.suite / "again.cu").read_text() == "one"


@pytest.mark.parametrize("target", ["/etc/hostname", "../../secret", "here/here/../../../secret"])
def test_a_link_out_of_a_revision_is_refused(checkout: Path, tmp_path: Path, target: str) -> None:
    # Kind: a revision of a stranger's names files of this machine.
    (checkout / SUITE).mkdir()
    (checkout / SUITE / "here").symlink_to(".")
    (checkout / SUITE / "stolen.cu").symlink_to(target)
    commit(checkout, "one")
    with pytest.raises(SideError, match=r"kernels/stolen.cu is a link to .* outside the suite"):
        ask(checkout, tmp_path, base="HEAD", head="HEAD")


def test_base_is_the_merge_base_on_a_branch(checkout: Path, tmp_path: Path) -> None:
    fork = commit(checkout, "one")
    git(checkout, "checkout", "--quiet", "-b", "feature")
    commit(checkout, "two")
    commit(checkout, "three")
    git(checkout, "checkout", "--quiet", "main")
    commit(checkout, "elsewhere")
    git(checkout, "checkout", "--quiet", "feature")
    sides = ask(checkout, tmp_path)
    assert content(sides) == ("three", "one")
    assert sides.base is not None
    assert sides.base.revision.commit == fork


def test_a_root_commit_is_checked_alone_and_says_so(checkout: Path, tmp_path: Path) -> None:
    commit(checkout, "one")
    sides = ask(checkout, tmp_path)
    assert sides.base is None
    assert "root commit" in sides.note


def test_a_clone_of_depth_one_is_checked_alone_and_says_how_to_deepen(
    checkout: Path, tmp_path: Path
) -> None:
    commit(checkout, "one")
    commit(checkout, "two")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{checkout}", str(shallow))
    sides = ask(shallow, tmp_path)
    assert sides.base is None
    assert "git fetch --deepen 1" in sides.note


def test_an_archive_without_git_is_checked_alone(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    (folder / SUITE).mkdir(parents=True)
    (folder / SUITE / "file.cu").write_text("one")
    sides = ask(folder, tmp_path)
    assert sides.base is None
    assert "no git checkout" in sides.note
    assert sides.head.revision.commit == f"tree-{tree_digest(folder / SUITE)[:12]}"


@pytest.mark.parametrize("named", ["nowhere", "HEAD~7", "--help", "a..b", ""])
def test_a_side_that_is_nowhere_is_refused_with_the_next_step(
    checkout: Path, tmp_path: Path, named: str
) -> None:
    commit(checkout, "one")
    with pytest.raises(SideError, match="neither a revision git knows nor a folder"):
        ask(checkout, tmp_path, base=named)


def test_a_folder_without_the_suite_is_refused(checkout: Path, tmp_path: Path) -> None:
    commit(checkout, "one")
    with pytest.raises(SideError, match="holds no kernels/"):
        ask(checkout, tmp_path, base=str(tmp_path))


def test_a_folder_can_be_given_the_commit_it_holds(checkout: Path, tmp_path: Path) -> None:
    commit(checkout, "one")
    folder = tmp_path / "folder"
    shutil.copytree(checkout / SUITE, folder / SUITE)
    sides = ask(checkout, tmp_path, base=f"{folder}@0123abc")
    assert sides.base is not None
    assert sides.base.revision.commit == "0123abc"


def test_both_sides_can_be_revisions(checkout: Path, tmp_path: Path) -> None:
    commit(checkout, "one")
    commit(checkout, "two")
    commit(checkout, "three")
    assert content(ask(checkout, tmp_path, base="HEAD~2", head="HEAD~1")) == ("two", "one")


def test_a_base_from_before_the_suite_has_no_suite(checkout: Path, tmp_path: Path) -> None:
    (checkout / "README").write_text("x")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "before")
    commit(checkout, "one")
    sides = ask(checkout, tmp_path)
    assert sides.base is not None
    assert not sides.base_has_suite()


def test_the_digest_of_a_tree_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = tree_digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    second = tree_digest(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({first, second, tree_digest(tmp_path)}) == 3
