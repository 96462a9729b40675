"""Bad input at the command line: the exact line on standard error, the exit code, and no file left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pomona.atomic import check_writable
from pomona.errors import PomonaError

Pomona = Callable[..., SimpleNamespace]

TABLE = "age,sex,label\n38,Male,1\n20,Female,0\n"
TARGET = ("--target", "label")
UNKNOWN_FORMAT = (
    "data.xyz: cannot tell the format from the name or the content: name it, one of parquet, arrow, vw, svmlight,"
    " svmlight-multilabel, tsv, csv"
)
# File, content, options, exit code, message.
CASES: list[tuple[str, str | bytes | None, tuple[str, ...], int, str]] = [
    ("gone.vw", None, (), 1, "gone.vw: the file does not exist"),
    ("gone*.vw", None, (), 1, "gone*.vw: no file matches the pattern"),
    ("empty.vw", "", (), 1, "empty.vw: the file is empty: expected at least one example"),
    ("empty.csv", "", TARGET, 1, "empty.csv: the file is empty: expected at least one example"),
    ("data.xyz", "hello world\n", (), 1, UNKNOWN_FORMAT),
    ("a.vw", "1 |x b:1\n-1 |x b:abc\n", (), 1, "a.vw:2:9: expected a number after 'b:', got 'abc'"),
    ("a.svm", "1 1:0.5\n-1 2:z\n", (), 1, "a.svm:2:6: expected a number after '2:', got 'z'"),
    ("a.csv", TABLE, ("--target", "lable"), 1,
     "a.csv: there is no column 'lable' for the target: did you mean 'label'?"),
    ("a.csv", TABLE, (*TARGET, "--ignore", "gae"), 1,
     "a.csv: there is no column 'gae' for the option ignore: did you mean 'age'?"),
    ("a.csv", TABLE, (), 2, "a.csv is a table: say which column to predict with --target, one of age, sex, label"),
    ("a.vw", "1 |x a\n-1 |x b\n", TARGET, 2,
     "--target is for tables; a.vw holds sparse examples, labels included"),
    ("a.csv", TABLE, ("--target", "sex", "--task", "regression"), 2,
     "regression needs a numeric target; got text such as 'Female'"),
    ("one.vw", "1 |x a\n1 |x b\n", (), 1,
     "one.vw: the target has the single value 1.0 in the first 2 rows: there is nothing to tell apart; shuffle the"
     " data, or give the task regression"),
    ("bare.vw", "|x a\n|x b\n", (), 1, "bare.vw: no example has a label: there is nothing to learn from"),
    ("a.parquet", b"PAR1junk", TARGET, 1,
     "a.parquet: the Parquet file is cut short: its end is missing, copy it again"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "code", "message"), CASES)
def test_train(
    pomona: Pomona,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str | bytes | None,
    options: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = os.listdir()
    result = pomona("train", name, *options, "-o", "m.pomona", "--quiet")
    assert result.err == f"pomona train: {message}\n"
    assert (result.code, result.out) == (code, "")
    assert os.listdir() == before


@pytest.mark.parametrize("command", ["predict", "inspect"])
def test_what_is_no_model(pomona: Pomona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)
    data = ["a.csv"] if command == "predict" else []
    for name, reason in (
        ("a.csv", "not a pomona model"),
        ("gone.pomona", "cannot read the model: no such file or directory"),
    ):
        result = pomona(command, name, *data)
        assert (result.code, result.out, result.err) == (1, "", f"pomona {command}: {name}: {reason}\n")


@pytest.mark.parametrize(
    ("command", "output"),
    [("train", "no/m.pomona"), ("convert", "no/a.parquet"), ("predict", "no/out.csv")],
)
def test_a_missing_output_folder_is_found_before_work_begins(
    pomona: Pomona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)
    assert pomona("train", "a.csv", *TARGET, "--quiet", "-o", "m.pomona").code == 0
    arguments = {
        "train": ["a.csv", *TARGET, "-o", output],
        "convert": ["a.csv", output],
        "predict": ["m.pomona", "a.csv", "-o", output],
    }[command]
    result = pomona(command, *arguments)
    folder = tmp_path.resolve() / "no"
    assert result.err == f"pomona {command}: cannot write {output}: the folder {folder} does not exist\n"
    assert (result.code, result.out) == (1, "")


def test_no_permission_for_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PomonaError) as caught:
        check_writable(tmp_path / "m.pomona")
    assert str(caught.value) == f"cannot write {tmp_path / 'm.pomona'}: permission denied"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "a.csv"], "convert needs an input and an output: pomona convert IN OUT"),
        (
            ["convert", "a.csv", "b.xls"],
            "the name of the output must end in .arrow, .parquet, .csv or .tsv; got 'b.xls': rename it or give"
            " --output-format",
        ),
        (
            ["convert", "a.vw", "/dev/null", "--output-format", "arrow"],
            "the output must be a file that can be replaced; /dev/null is a device or a pipe",
        ),
        (["convert", "a.vw", "b.csv"], "a.vw holds sparse examples, which only an .arrow file can; got 'b.csv'"),
        (["predict", "m", "a.csv", "--output-format", "parquet"], "--output-format parquet needs a file: give -o"),
        (["predict", "m", "a.csv", "--json"], "--json needs a file for the predictions: give -o"),
    ],
)
def test_options_that_do_not_fit(
    pomona: Pomona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)
    Path("a.vw").write_text("1 |x a\n")
    result = pomona(*arguments)
    assert (result.code, result.out, result.err) == (2, "", f"pomona {arguments[0]}: {message}\n")


def test_products_of_namespaces_that_are_not_there(pomona: Pomona, tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 |x a |y b\n-1 |x b |y a\n" * 10)
    result = pomona("train", path, "--interactions", "x*z", "--interactions", "x*y")
    assert "warning: --interactions x*z made no products: there is no namespace 'z' in the data\n" in result.err
    assert result.err.count("warning") == 1
    result = pomona("train", path, "--learner", "apple", "--expand", "x", "--expand", "z")
    assert "warning: --expand z made no products: there is no namespace 'z' in the data\n" in result.err
    assert result.err.count("warning") == 1


def test_a_column_that_the_format_cannot_hold(pomona: Pomona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": [[1, 2], [3]]}), "a.parquet")
    result = pomona("convert", "a.parquet", "a.csv")
    assert result.code == 1
    assert result.err.startswith("pomona convert: a.parquet: cannot be written as csv: ")
    assert os.listdir() == ["a.parquet"]


def test_skipped_lines_are_counted(pomona: Pomona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.vw").write_text("1 |x a\n-1 |x b:abc\n-1 |x c\n0 |x d:\n" * 10)
    result = pomona("train", "a.vw", "--on-error", "skip")
    assert result.code == 0
    assert "skipped 20 malformed lines, the first: a.vw:2:9: expected a number after 'b:', got 'abc'\n" in result.err
