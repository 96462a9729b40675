"""The model file: complete or absent, checked, never executed."""

from __future__ import annotations

import errno
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pomona
from pomona.atomic import replacing
from pomona.errors import ModelFileError, PomonaError
from pomona.learner import State
from pomona.model import file as model_file
from pomona.model.file import load, save

GOLDEN = Path(__file__).parent.parent / "golden"


def example_state() -> State:
    """What the golden file holds."""
    return State(
        {
            "learner": "online",
            "task": {"kind": "binary", "classes": ["nein", "ja – ✓"]},
            "loss": 0.25,
            "none": None,
        },
        {
            "weights": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
            "ids": np.array([1, 2**63, 2**64 - 1], np.uint64),
            "empty": np.empty((0, 4), np.int16),
            "flag": np.array(True),
            "names": np.frombuffer("größe=ü".encode(), np.uint8),
        },
    )


def assert_equal(first: State, second: State) -> None:
    assert first.header == second.header
    assert list(first.arrays) == list(second.arrays)
    for name, array in first.arrays.items():
        other = second.arrays[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(array, other)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clicks.pomona"


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message[len(f"{path}: ") :]


def test_round_trip(path: Path) -> None:
    save(path, example_state())
    loaded = load(path)
    assert_equal(loaded, example_state())
    assert all(array.flags.writeable for array in loaded.arrays.values())
    assert os.listdir(path.parent) == ["clicks.pomona"]


NUMBERS = (
    hnp.integer_dtypes(endianness="=")
    | hnp.unsigned_integer_dtypes(endianness="=")
    | hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64))
    | hnp.boolean_dtypes()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__")


@settings(deadline=None, max_examples=100)
@given(
    header=st.dictionaries(st.text(), JSON, max_size=4),
    arrays=st.dictionaries(
        NAMES,
        hnp.arrays(NUMBERS, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
        max_size=4,
    ),
)
def test_any_state_comes_back(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("m") / "m.pomona"
    save(path, State(header, arrays))
    assert_equal(load(path), State(header, arrays))


def test_every_truncation_is_detected(path: Path) -> None:
    save(path, example_state())
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refusal(path)


def test_every_flipped_byte_is_detected_or_harmless(path: Path) -> None:
    save(path, example_state())
    whole = path.read_bytes()
    noise = np.random.default_rng(0).integers(1, 256, len(whole)).tolist()
    harmless = 0
    for position in range(len(whole)):
        for flip in (1 << (position % 8), noise[position]):
            damaged = bytearray(whole)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            try:
                assert_equal(load(path), example_state())
                harmless += 1
            except ModelFileError as error:
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
    # Only the padding of the table and, at most, unused white space may change unnoticed.
    assert harmless < 10


@settings(deadline=None, max_examples=200)
@given(content=st.binary(max_size=400), table=st.none() | st.dictionaries(st.text(), JSON, max_size=3))
def test_arbitrary_bytes_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, table: dict[str, Any] | None
) -> None:
    path = tmp_path_factory.mktemp("m") / "m.pomona"
    if table is not None:
        head = json.dumps(table).encode()
        content = struct.pack("<Q", len(head)) + head + content
    path.write_bytes(content)
    refusal(path)


def test_foreign_files_are_named_as_such(path: Path) -> None:
    from safetensors.numpy import save_file

    assert refusal(path) == "cannot read the model: no such file or directory"
    path.write_bytes(b"")
    assert refusal(path) == "not a pomona model: the file is empty"
    path.write_text("age,sex,label\n38,Male,1\n" * 100)
    assert refusal(path) == "not a pomona model"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000))
    assert refusal(path) == "not a pomona model"
    save_file({"a": np.zeros(3)}, path)
    assert refusal(path) == "not a pomona model, though it looks like a safetensors file"
    save_file({"a": np.zeros(3)}, path, {"format": "pt"})
    assert refusal(path) == "not a pomona model, though it looks like a safetensors file"
    path.unlink()
    path.mkdir()
    assert refusal(path) == "cannot read the model: is a directory"


def test_damage_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, example_state())
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert refusal(path) == (
        f"the model file is cut short: {len(whole) - 1:,} bytes where at least {len(whole):,} are needed;"
        " copy it again or train anew"
    )
    path.write_bytes(whole[:-1] + b"?")
    assert refusal(path) == (
        "the model file is damaged: the array 'names' fails its check; copy it again or train anew"
    )
    path.write_bytes(whole + b"more")
    assert refusal(path) == "the model file is damaged: 4 bytes follow its end; copy it again or train anew"
    monkeypatch.setattr(model_file, "VERSION", 2)
    save(path, example_state())
    monkeypatch.undo()
    assert refusal(path) == (
        f"the model has format version 2 (made by pomona {pomona.__version__}), but pomona"
        f" {pomona.__version__} reads versions up to 1: install a newer pomona"
    )


def test_other_programs_can_read_it(path: Path) -> None:
    from safetensors import safe_open

    save(path, example_state())
    with safe_open(path, "numpy") as opened:
        assert set(opened.keys()) == set(example_state().arrays)
        for name, array in example_state().arrays.items():
            np.testing.assert_array_equal(opened.get_tensor(name), array)
        header = json.loads(opened.metadata()["pomona"])
    assert (header["format"], header["version"]) == ("pomona", 1)
    assert header["header"] == example_state().header


class DiskFullError(OSError):
    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    save(path, example_state())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise DiskFullError

    monkeypatch.setattr(os, step, full)
    with pytest.raises(PomonaError) as caught:
        save(path, State({}, {}))
    assert str(caught.value) == f"cannot write {path}: no space left on device"
    assert os.listdir(path.parent) == ["clicks.pomona"]
    assert path.read_bytes() == before


def test_an_interrupt_while_writing_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, example_state())
    before = path.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(path, State({}, {}))
    assert os.listdir(path.parent) == ["clicks.pomona"]
    assert path.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_is_written_and_stays_a_device() -> None:
    with pytest.raises(PomonaError, match="^cannot write /dev/full: no space left on device$"):
        save("/dev/full", example_state())
    save("/dev/null", example_state())
    assert os.path.exists("/dev/full") and not os.path.isfile("/dev/full")
    assert not os.path.isfile("/dev/null")


def test_missing_folder_and_folder_in_the_way(path: Path) -> None:
    missing = path.parent / "models" / "m.pomona"
    with pytest.raises(PomonaError) as caught:
        save(missing, example_state())
    assert str(caught.value) == f"cannot write {missing}: the folder {missing.parent} does not exist"
    with pytest.raises(PomonaError) as caught:
        save(path.parent, example_state())
    assert str(caught.value) == f"cannot write {path.parent}: it is a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        with pytest.raises(PomonaError) as caught:
            save(path, example_state())
        assert str(caught.value) == f"cannot write {path}: permission denied"
    finally:
        path.parent.chmod(0o700)


def test_errors_of_other_files_are_not_blamed_on_this_one(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="^data.vw: the file does not exist$"), replacing(path):
        raise FileNotFoundError("data.vw: the file does not exist")
    assert list(path.parent.iterdir()) == []


def test_a_link_stays_a_link(path: Path) -> None:
    target = path.parent / "v1.pomona"
    path.symlink_to(target)
    save(path, example_state())
    assert path.is_symlink()
    assert_equal(load(target), example_state())


def test_only_plain_values_are_written(path: Path) -> None:
    save(path, State({"rate": np.float64(0.5), "n": np.int64(3), "path": Path("a")}))
    assert load(path).header == {"rate": 0.5, "n": 3, "path": "a"}
    with pytest.raises(TypeError, match="a model's header holds plain JSON values; got object"):
        save(path, State({"x": object()}))
    with pytest.raises(TypeError, match="the array 'a' has the type object"):
        save(path, State({}, {"a": np.array([None])}))
    assert load(path).header["n"] == 3


def test_the_golden_file_stays_loadable() -> None:
    """Version 1, as first written. Written anew only by `make golden`."""
    assert_equal(load(GOLDEN / "state-v1.pomona"), example_state())


if __name__ == "__main__":
    save(GOLDEN / "state-v1.pomona", example_state())
