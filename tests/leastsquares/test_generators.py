"""Generators: what they make, that they are the same again from their seeds, and what they learn from data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.signal import correlate2d
from scipy.spatial.distance import pdist

from pomona.errors import OptionError
from pomona.leastsquares import streams
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.generators import GENERATORS, View, generator_of
from pomona.leastsquares.generators.convolution import spherical_kmeans
from pomona.leastsquares.generators.random import median_distance, weighted_median
from pomona.leastsquares.rows import ArrayRows, spread

HERE = Place.of(None, "float64")


def view(X, weights=None, gradient=None):
    return View(HERE, X.shape[1], ArrayRows(X, HERE), weights, gradient)


def features(generator, X, stage=0, size=50, **more):
    look = view(X, **more)
    reduce = generator.reduction(look)
    made = generator.generate(stage, size, look)
    return made(X if reduce is None else reduce(X))


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).standard_normal((300, 12)) + 3.0


RANDOM = ["fourier", "logits", "polynomials"]


@pytest.mark.parametrize("name", [*RANDOM, "sample"])
def test_the_same_seed_makes_the_same_features_elsewhere(name, X):
    first = generator_of(name, 7)
    Z = features(first, X, stage=3)
    again = GENERATORS[name](**first.parameters(), learnt=dict(first.learnt))
    blind = View(HERE, X.shape[1])
    reduce = again.reduction(blind)
    np.testing.assert_array_equal(again.generate(3, 50, blind)(X if reduce is None else reduce(X)), Z)
    if name != "sample":
        assert not np.allclose(features(generator_of(name, 8), X, stage=3), Z)
        assert not np.allclose(features(first, X, stage=4), Z)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("options", [{}, {"pca": 3}, {"pca": 3, "emphasis": 0.7}, {"standardize": True}])
def test_sparse_rows_and_units(name, options, X):
    X = np.where(X > 3, X, 0.0)
    Z = features(generator_of(name, 0, options), X)
    np.testing.assert_allclose(features(generator_of(name, 0, options), sparse.csr_matrix(X)), Z, atol=1e-10)
    np.testing.assert_allclose(features(generator_of(name, 0, options), 1000 * X), Z, atol=1e-6)
    if "standardize" in options:
        units = np.logspace(-3, 3, X.shape[1])
        np.testing.assert_allclose(features(generator_of(name, 0, options), X * units), Z, atol=1e-6)


def test_fourier_features_approximate_the_gaussian_kernel(X):
    Z = features(generator_of("fourier", 0), X, size=20_000)
    s = np.median(pdist(X))
    distances = ((X[:20, None] - X[None, :20]) ** 2).sum(axis=2)
    np.testing.assert_allclose(2 * (Z[:20] @ Z[:20].T) / Z.shape[1], np.exp(-distances / (2 * s**2)), atol=0.03)


def test_median_distance_counts_weights_as_repetitions(X):
    assert median_distance(X, np.ones(len(X))) == pytest.approx(np.median(pdist(X)), rel=1e-3)
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    repeated = np.repeat(X, counts, axis=0)
    assert median_distance(X, counts.astype(float)) == pytest.approx(median_distance(repeated, np.ones(len(repeated))))
    assert median_distance(np.ones((5, 2)), np.ones(5)) == 1.0
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])) == 2.0


def test_pca_keeps_the_strong_directions():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2)) @ rng.standard_normal((2, 10)) + 1e-6 * rng.standard_normal((500, 10))
    generator = generator_of("fourier", 0, {"pca": 2})
    generator.reduction(view(X))
    basis = generator.learnt["basis"]
    np.testing.assert_allclose((X - X.mean(axis=0)) @ basis @ basis.T, X - X.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("emphasis", [-1.0, -0.5, 0.7, 1.0])
@pytest.mark.parametrize("pca", [None, 3])
def test_emphasis_is_a_power_of_the_deviation_of_each_component(emphasis, pca):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5)) * [9, 7, 4, 2, 1]
    X[:, 4] = X[:, 3]  # one component of no deviation, which must not blow up
    deviations = []
    for options in ({"pca": pca}, {"pca": pca, "emphasis": emphasis}):
        generator = generator_of("fourier", 0, options)
        generator.reduction(view(X))
        basis = generator.learnt.get("basis", np.linalg.eigh(np.cov(X.T))[1][:, ::-1])
        deviations.append(((X - X.mean(axis=0)) @ basis).std(axis=0))
    varies = deviations[0] > 1e-6
    expected = np.power(deviations[0], 1 + emphasis, out=np.zeros(len(varies)), where=varies)
    np.testing.assert_allclose(deviations[1], expected, rtol=1e-6, atol=1e-6)


def test_columns_are_drawn_without_replacement_and_then_anew():
    X = np.arange(10.0)[None, :]
    generator = generator_of("sample", 0)
    drawn = [features(generator, X, stage=t, size=4)[0].tolist() for t in range(6)]
    for a in (0, 3):
        assert sorted(drawn[a] + drawn[a + 1] + drawn[a + 2]) == list(range(10))
    assert drawn[0] != drawn[3]


@pytest.mark.parametrize("every_stage", [False, True])
def test_columns_in_order_of_the_gradient(every_stage):
    X = np.arange(6.0)[None, :]
    strengths = iter([[0, 5, 3, 4, 1, 2.0], [6, 5, 3, 4, 1, 2.0], [6, 5, 3, 4, 7, 2.0], [1, 2, 3, 4, 5, 6.0]])
    generator = generator_of("gradient", 0, {"every_stage": every_stage})
    drawn = [
        features(generator, X, stage=t, size=2, gradient=lambda: np.array(next(strengths)))[0].tolist()
        for t in range(4)
    ]
    # Stages 0 to 2 are one pass over the columns.
    assert drawn[:3] == ([[1, 3], [0, 2], [4, 5]] if every_stage else [[1, 3], [2, 5], [4, 0]])
    assert drawn[3] == ([5, 4] if every_stage else [0, 1])


def test_a_function_of_ones_own(X):
    def pairs(stage, size, rng):
        i, j = rng.integers(0, 12, (2, size))
        return lambda rows: rows[:, i] * rows[:, j]

    generator = generator_of(pairs, 3)
    np.testing.assert_array_equal(features(generator, X, stage=1), features(generator, X, stage=1))
    assert features(generator, X).shape == (300, 50)
    assert generator.describe() == "pairs"


def images(n=20, h=9, w=8, c=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, h, w, c))


def test_convolution_equals_a_slow_one():
    pictures = images()
    X = pictures.reshape(20, -1)
    generator = generator_of("convolution", 0, {"shape": (9, 8, 2), "patch": 3, "products": False})
    look = view(X)
    Z = generator.generate(0, 8, look)(X)
    masks, bias = generator._masks(0, 2, look)
    responses = np.zeros((20, 7, 6, 2))
    for i in range(20):
        for m in range(2):
            mask = masks[:, m].reshape(3, 3, 2)
            for c in range(2):
                responses[i, :, :, m] += correlate2d(pictures[i, :, :, c], mask[:, :, c], mode="valid")
    responses = np.maximum(responses + bias, 0)
    rows, columns = [(0, 3), (3, 7)], [(0, 3), (3, 6)]
    slow = [responses[:, a:b, c:d].mean(axis=(1, 2)) for a, b in rows for c, d in columns]
    np.testing.assert_allclose(Z, np.concatenate(slow, axis=1), atol=1e-5)


@pytest.mark.parametrize("masks", ["random", "kmeans"])
def test_convolution_with_products(masks):
    X = images().reshape(20, -1)
    generator = generator_of("convolution", 0, {"shape": (9, 8, 2), "patch": 3, "masks": masks})
    Z = features(generator, X, size=32)
    assert Z.shape == (20, 32)
    plain = Z[:, :16]
    for column in Z[:, 16:].T:
        products = plain[:, :, None] * plain[:, None, :]
        assert np.isclose(products, column[:, None, None]).all(axis=0).any()
    again = GENERATORS["convolution"](**generator.parameters(), learnt=dict(generator.learnt))
    np.testing.assert_array_equal(again.generate(0, 32, View(HERE, X.shape[1]))(X), Z)
    np.testing.assert_allclose(features(generator, sparse.csr_matrix(X), size=32), Z)


def test_kmeans_finds_directions():
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    points = truth[:, rng.integers(0, 3, 600)].T * rng.uniform(1, 2, (600, 1)) + 0.05 * rng.standard_normal((600, 6))
    found = spherical_kmeans(points, truth + 0.3 * rng.standard_normal((6, 3)), HERE)
    assert (np.abs(found.T @ truth).max(axis=0) > 0.99).all()


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("furier", None, "one of sample, gradient, fourier"),
        ("fourier", {"bandwidth": 1}, "has the options scale, pca, emphasis, standardize; got {'bandwidth': 1}"),
        ("fourier", {"scale": 0}, "scale of a generator must be above 0; got 0"),
        ("fourier", {"pca": 0}, "at least 1 component"),
        ("fourier", {"emphasis": -2}, "must be between -1 and 2; got -2"),
        ("polynomials", {"degree": 9}, "must be 2 to 6; got 9"),
        ("convolution", {"masks": "sobel"}, "one of random, kmeans; got 'sobel'"),
        ("convolution", {"patch": 40}, "do not fit images of 32 × 32"),
        ("convolution", {"shape": (3, 3)}, "height, width, channels"),
        (3, None, "a generator is a name, a function"),
        (len, {"a": 1}, "only be given with its name"),
    ],
)
def test_wrong_options(given, options, message):
    with pytest.raises(OptionError, match=message):
        generator_of(given, 0, options)


def test_images_of_another_size(X):
    with pytest.raises(OptionError, match="have 3072 numbers; got rows of 12"):
        features(generator_of("convolution", 0), X)


def test_streams_are_fixed_for_ever():
    # Model files hold seeds: these numbers must never change.
    assert streams.bits(2, 1, 2, "x").tolist() == [4058602378651214788, 9376403824312897334]
    np.testing.assert_allclose(streams.uniform((2,), 0, 0, "u"), [0.693632521510553, 0.5147327054940778], rtol=1e-15)
    np.testing.assert_allclose(
        streams.normal((3,), 0, 0, "n"), [0.5065845251083374, 0.021102234721183777, -1.2254513502120972], rtol=1e-5
    )
    assert streams.permutation(5, 0, 0, "p").tolist() == [2, 0, 4, 1, 3]


def test_streams_have_their_distributions():
    from scipy import stats

    assert stats.kstest(streams.normal((20_001,), 5, 1, "n"), "norm").pvalue > 1e-3
    assert stats.kstest(streams.uniform((20_000,), 5, 1, "u"), "uniform").pvalue > 1e-3
    assert sorted(streams.permutation(100, 1, 1, "p")) == list(range(100))


def test_rows_are_spread_over_the_weight():
    numbers, weights = spread(10, None, 5)
    assert (numbers.tolist(), weights.tolist()) == ([0, 2, 4, 6, 8], [1.0] * 5)
    numbers, weights = spread(4, np.array([0.0, 2.0, 1.0, 0.0]), 5)
    assert (numbers.tolist(), weights.tolist()) == ([1, 2], [2.0, 1.0])


def test_monomials(X):
    terms = [(0,), (1, 1), (2, 3, 4), (5,), (0, 1)]
    generator = generator_of("monomials", 0, {"terms": terms})
    truth = np.stack([X[:, list(term)].prod(axis=1) for term in terms], axis=1)
    np.testing.assert_allclose(features(generator, X, stage=0, size=2), truth[:, :2])
    np.testing.assert_allclose(features(generator, X, stage=2, size=2), truth[:, 4:])
    np.testing.assert_allclose(features(generator, X, stage=3, size=2), truth[:, :2])
    np.testing.assert_allclose(features(generator, sparse.csr_matrix(X), size=9), truth)
    with pytest.raises(OptionError, match="use column 12, but the data has 12 columns"):
        features(generator_of("monomials", 0, {"terms": [(12,)]}), X)
    with pytest.raises(OptionError, match="got an empty one"):
        generator_of("monomials", 0, {"terms": [()]})


def test_monomials_of_apple(tmp_path):
    from pomona import AppleClassifier, StagewiseClassifier, load
    from pomona.estimators.monomials import monomials_of

    rows = np.random.default_rng(0).standard_normal((1500, 5))
    y = (rows[:, 0] * rows[:, 1] + rows[:, 2] > 0).astype(int)
    found = monomials_of(AppleClassifier(numeric="raw").fit(rows, y), 30)
    assert (0, 1) in {tuple(sorted(term)) for term in found.terms[:5]}
    model = StagewiseClassifier(generator=found, n_stages=1).fit(rows, y)
    assert model.score(rows, y) > 0.9  # logistic regression on the columns: 0.80
    model.save(tmp_path / "m.pomona")
    assert load(tmp_path / "m.pomona").learner.model.models[0].generator.terms == [list(term) for term in found.terms]
    for numeric in ("hat", "standard", "auto"):
        with pytest.raises(ValueError, match="fit apple with numeric='raw'"):
            monomials_of(AppleClassifier(numeric=numeric).fit(rows, y))
    as_words = AppleClassifier(numeric="raw", categorical=[0, 1, 2, 3, 4]).fit(np.round(rows), y)
    with pytest.raises(ValueError, match=r"got the feature 'x\d=.*fit apple with numeric='raw'"):
        monomials_of(as_words)
