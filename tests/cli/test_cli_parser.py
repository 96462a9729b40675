"""Options: what is accepted, and the one line that refuses the rest."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from pomona import words
from pomona.cli import common, train
from pomona.cli.parser import interactions, joined, names, number, one_of, size, whole
from pomona.encode.columns import NUMERIC_WORDS
from pomona.online.heuristics import RULES
from pomona.online.parameters import LOSSES, PRODUCTS, SCHEDULES, UPDATES
from pomona.options import EncodeOptions, LearnOptions, ReadOptions
from pomona.source.open import FORMATS

ROUNDS = "rising whole numbers with commas between, such as 1000,5000"
TERMS = "linear, quadratic, cubic or fields with * between, such as age*sex"


def parse(*arguments: str) -> argparse.Namespace:
    return train.parser().parse(arguments)


def test_no_option_given_means_the_library_defaults() -> None:
    args = parse("clicks.vw")
    assert train.learn_options(args) == LearnOptions()
    assert train.encode_options(args) == EncodeOptions()
    assert common.read_options(args) == ReadOptions(ignore=[], categorical=[], text=[], ngram_namespaces=[])


def test_the_choices_are_those_of_the_library() -> None:
    assert set(common.FORMATS) == {form.name for form in FORMATS}
    assert set(train.NUMERIC) == set(NUMERIC_WORDS)
    assert (train.LOSSES, train.UPDATES) == (LOSSES[:-1], UPDATES)
    assert set(train.HEURISTICS) == {"auto", *RULES}
    assert (train.SCHEDULES, train.PRODUCTS) == (SCHEDULES, PRODUCTS)


def test_every_option_of_learning_can_be_given() -> None:
    args = parse(
        *"a.vw --loss hinge b.vw --task binary --update ftrl --no-normalized --no-invariant".split(),
        *"--learning-rate 0.1 --l1 1e-6 --l2 0.5 --bits 18 --memory 2G --passes 3 --holdout 0.1".split(),
        *"--patience 2 --no-shuffle --shuffle-buffer 10 --seed 7 --interactions quadratic".split(),
        *"--no-squares --no-intercept --class-weight balanced --quantile 0.9 --multiclass ovr".split(),
    )
    assert args.data == ["a.vw", "b.vw"]
    assert train.learn_options(args) == LearnOptions(
        loss="hinge",
        task="binary",
        update="ftrl",
        normalized=False,
        invariant=False,
        intercept=False,
        learning_rate=0.1,
        l1=1e-6,
        l2=0.5,
        bits=18,
        memory=2 << 30,
        passes=3,
        holdout=0.1,
        patience=2,
        shuffle=False,
        shuffle_buffer=10,
        seed=7,
        interactions="quadratic",
        squares=False,
        quantile=0.9,
        multiclass="ovr",
        class_weight="balanced",
    )


def test_every_option_of_apple_can_be_given() -> None:
    args = parse(
        *"a.vw --learner apple --alpha 0.5 --heuristic ssm --epochs 4 --grow first --rounds 10,200".split(),
        *"--degree 3 --fallback --expand a,b --expand c --decay".split(),
    )
    assert train.learn_options(args) == LearnOptions(
        learner="apple",
        alpha=0.5,
        heuristic="ssm",
        epochs=4,
        grow="first",
        rounds=[10, 200],
        degree=3,
        fallback=True,
        expand=("a", "b", "c"),
        decay=True,
    )


def test_columns_and_products_of_columns() -> None:
    args = parse(
        *"a.csv --target y --weight w --ignore id,date --ignore x".split(),
        *"--interactions a*b --interactions a*c*d".split(),
    )
    read = common.read_options(args)
    assert (read.target, read.weight, read.ignore) == ("y", "w", ["id", "date", "x"])
    assert train.learn_options(args).interactions == ("a*b", "a*c*d")
    assert train.learn_options(parse("a.csv", "--interactions", "a*b")).interactions == ("a*b",)


@pytest.mark.parametrize(
    ("check", "text", "value"),
    [
        (number(least=0), "0", 0.0),
        (number(above=0, below=1), "1e-3", 1e-3),
        (whole(1), "12", 12),
        (size, "500M", 500 << 20),
        (size, "1.5GiB", 3 << 29),
        (size, "4096", 4096),
        (size, "2gb", 2 << 30),
        (names, "a,b", ["a", "b"]),
        (one_of("x", "y"), "y", "y"),
        (joined("hat", "raw"), "hat+raw", "hat+raw"),
        (joined("hat", "raw"), "auto", "auto"),
        (interactions, "age*sex", "age*sex"),
        (interactions, "cubic", "cubic"),
    ],
)
def test_good_values(check: Callable[[str], object], text: str, value: object) -> None:
    assert check(text) == value


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--l1", "-1", "--l1 must be a number >= 0; got -1"),
        ("--l1", "nan", "--l1 must be a number >= 0; got nan"),
        ("--l2", "inf", "--l2 must be a number >= 0; got inf"),
        ("--l2", "much", "--l2 must be a number >= 0; got 'much'"),
        ("--learning-rate", "0", "--learning-rate must be a number > 0; got 0"),
        ("--quantile", "1", "--quantile must be a number > 0 and < 1; got 1"),
        ("--holdout", "1", "--holdout must be a number >= 0 and < 1; got 1"),
        ("--passes", "0", "--passes must be a whole number >= 1; got 0"),
        ("--passes", "1.5", "--passes must be a whole number >= 1; got '1.5'"),
        ("--bits", "31", "--bits must be a whole number from 10 to 30; got 31"),
        ("--threads", "0", "--threads must be a whole number from 1 to 1024; got 0"),
        ("--memory", "2X", "--memory must be a size such as 500M or 2G; got '2X'"),
        ("--memory", "0", "--memory must be a size such as 500M or 2G; got '0'"),
        ("--loss", "log", "--loss must be one of squared, logistic, hinge, quantile, poisson; got 'log'"),
        ("--task", "rank", "--task must be one of binary, multiclass, regression; got 'rank'"),
        ("--update", "adam", "--update must be one of adaptive, adagrad, sgd, ftrl; got 'adam'"),
        ("--learner", "tree", f"--learner must be one of {', '.join(train.LEARNERS)}; got 'tree'"),
        ("--alpha", "-1", "--alpha must be auto or a number >= 0 and <= 4; got -1"),
        ("--alpha", "some", "--alpha must be auto or a number >= 0 and <= 4; got 'some'"),
        ("--epochs", "0", "--epochs must be a whole number >= 1; got 0"),
        ("--heuristic", "luck", f"--heuristic must be one of {', '.join(train.HEURISTICS)}; got 'luck'"),
        ("--rounds", "5,3", f"--rounds must be {ROUNDS}; got '5,3'"),
        ("--rounds", "many", f"--rounds must be {ROUNDS}; got 'many'"),
        ("--numeric", "log", "--numeric must be auto, or some of hat, onehot, raw, standard with + between; got 'log'"),
        ("--format", "xls", f"--format must be one of {', '.join(common.FORMATS)}; got 'xls'"),
        ("--on-error", "ask", "--on-error must be one of stop, skip; got 'ask'"),
        ("--ignore", ",", "--ignore must be a name, or names with commas between; got ','"),
        ("--interactions", "all", f"--interactions must be {TERMS}; got 'all'"),
        ("--interactions", "a*", f"--interactions must be {TERMS}; got 'a*'"),
        (
            "--learnign-rate",
            "1",
            "unknown option '--learnign-rate'; did you mean --learning-rate or --learner?",
        ),
        ("--xyzzy", "1", "unknown option '--xyzzy'"),
    ],
)
def test_bad_values(capsys: pytest.CaptureFixture[str], option: str, value: str, message: str) -> None:
    with pytest.raises(SystemExit) as left:
        parse("clicks.vw", option, value)
    assert left.value.code == 2
    captured = capsys.readouterr()
    assert captured.err == f"pomona train: error: {message} (see pomona train --help)\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    ("function", "value", "shown"),
    [
        (words.count_words, 950, "950"),
        (words.count_words, 12345, "12.3k"),
        (words.count_words, 999_999, "1M"),
        (words.count_words, 123_456_789, "123M"),
        (words.byte_words, 999, "999 B"),
        (words.byte_words, 4_500_000, "4.5 MB"),
        (words.loss_words, 0.69315, "0.69315"),
        (words.loss_words, 4103656902.27, "4.104e+09"),
        (words.time_words, 0.84, "0.8 s"),
        (words.time_words, 12.3, "12 s"),
        (words.time_words, 185, "3:05"),
        (words.time_words, 3723, "1:02:03"),
        (words.label_words, -1.0, "-1"),
        (words.label_words, 0.5, "0.5"),
        (words.label_words, "ja", "ja"),
    ],
)
def test_words(function: Callable[[object], str], value: object, shown: str) -> None:
    assert function(value) == shown


def test_words_of_tasks() -> None:
    assert words.task_words("regression", []) == "regression"
    assert words.task_words("binary", [-1.0, 1.0]) == "binary, classes -1 and 1"
    assert words.task_words("multiclass", ["a", "b", "c"]) == "multiclass, classes a, b and c"
    assert words.task_words("multiclass", list(range(26))) == "multiclass, 26 classes: 0, 1, 2, 3, 4, …"
    assert words.task_words("binary", ["only"]) == "binary, class only"
