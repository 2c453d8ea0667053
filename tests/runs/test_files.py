"""Files that Python writes are whole or not there, and what was there before survives a failure."""

import os
import resource
import stat

import pytest
import torch
from safetensors.torch import load_file

from partita.errors import InputError
from partita.files import beside, save_tensors, write_whole

LIMIT = 10_000


@pytest.fixture
def small_files():
    """No file may grow beyond LIMIT bytes, as on a disk that is nearly full; Python ignores the signal of it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_are_written(tmp_path):
    write_whole(tmp_path / "a", "käse\n")
    write_whole(str(tmp_path / "b"), b"\x00\x01")
    assert (tmp_path / "a").read_bytes() == "käse\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\x00\x01"
    assert names(tmp_path) == ["a", "b"]


def test_the_old_file_survives_a_full_disk(tmp_path, small_files):
    path = tmp_path / "a"
    write_whole(path, "old")
    with pytest.raises(InputError, match="a: cannot write this file: File too large; free some space"):
        write_whole(path, "x" * (LIMIT + 1))
    assert path.read_text() == "old" and names(tmp_path) == ["a"]


def test_tensors_survive_a_full_disk(tmp_path, small_files):
    path = tmp_path / "a.safetensors"
    save_tensors({"x": torch.ones(2)}, path)
    with pytest.raises(InputError, match="a.safetensors: cannot write this file"):
        save_tensors({"x": torch.ones(LIMIT)}, path)
    assert torch.equal(load_file(path)["x"], torch.ones(2)) and names(tmp_path) == ["a.safetensors"]


def test_an_error_in_the_block_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt), beside(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and names(tmp_path) == ["a"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "to").write_text("old")
    (tmp_path / "link").symlink_to("to")
    (tmp_path / "nowhere").symlink_to("new")
    write_whole(tmp_path / "link", "text")
    write_whole(tmp_path / "nowhere", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "nowhere").is_symlink()
    assert (tmp_path / "to").read_text() == (tmp_path / "new").read_text() == "text"


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_no_file_is_written_directly():
    write_whole("/dev/null", "text")
    with pytest.raises(InputError, match="/dev/full: cannot write this file: No space left on device; free some space"):
        write_whole("/dev/full", "text")
    read, write = os.pipe()
    write_whole(f"/dev/fd/{write}", "text")
    assert os.read(read, 10) == b"text"
    os.close(read), os.close(write)


@pytest.mark.parametrize("name, hint", [("absent/a", "does its folder exist"), ("", "name a file in this folder")])
def test_a_wrong_place_is_named(tmp_path, name, hint):
    with pytest.raises(InputError, match=f"cannot write this file: .*; {hint}"):
        write_whole(tmp_path / name, "text")
    assert names(tmp_path) == []
