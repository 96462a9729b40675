"""CIFAR-10 (a subset): error against the number of masks, for random and k-means masks (Figure 3)."""

from __future__ import annotations

from typing import Any

from benchmarks.leastsquares import Images, Setting, figure_and_axes, images, save_figure, timed
from benchmarks.options import say, table
from pomona import StagewiseClassifier

#: With 2 × 2 pooling and as many products, a mask makes eight features.
MASKS, QUICK_MASKS = (50, 100, 200, 400), (25, 50)
FEATURES = 8
#: The paper, with all 50,000 images: about 400 masks and polynomial features.
PAPER = 20.0


def cifar(setting: Setting) -> bool:
    data = images(setting, "cifar10_subset", 3000)
    curves: dict[str, list[dict[str, Any]]] = {}
    for masks in ("random", "kmeans"):
        for products in (False, True):
            name = f"{masks} masks" + (" and products" if products else "")
            counts = QUICK_MASKS if setting.quick else MASKS
            curves[name] = [_point(setting, data, masks, products, count) for count in counts]
    rows = [
        [name, str(point["masks"]), f"{point['error']:.1f}", f"{point['seconds']:.0f}"]
        for name, points in curves.items()
        for point in points
    ]
    print(table([f"CIFAR-10, {len(data.y):,} images", "masks", "error %", "seconds"], rows))
    print(f"The paper, with 50,000 images: below {PAPER:g} % with about 400 masks and polynomial features.")
    _draw(setting, curves)
    return True


def _point(setting: Setting, data: Images, masks: str, products: bool, count: int) -> dict[str, Any]:
    key = {"part": "cifar", "kind": masks, "products": products, "masks": count, "rows": len(data.y)}
    known = setting.log.find(**key)
    if known is not None:
        return known
    say(f"CIFAR-10, {count} {masks} masks")
    model = StagewiseClassifier(
        generator="convolution",
        generator_options={"masks": masks, "products": products},
        block_size=count * (FEATURES if products else FEATURES // 2),
        n_stages=1,
        ridge=1e-4,
        precision="float32",
        memory=2 << 30,
    )
    with timed() as clock:
        model.fit(data.X, data.y)
    return setting.log.add(**key, error=data.error(model.predict(data.X_test)), seconds=clock.seconds)


def _draw(setting: Setting, curves: dict[str, list[dict[str, Any]]]) -> None:
    made = figure_and_axes()
    if made is None:
        return
    figure, axes = made
    for name, points in curves.items():
        axes.plot([point["masks"] for point in points], [point["error"] for point in points], marker="o", label=name)
    axes.set(xscale="log", xlabel="masks", ylabel="test error in percent", title="CIFAR-10, 15,000 images (Figure 3)")
    axes.legend(fontsize=8)
    save_figure(figure, setting.results / "least_squares_cifar.png")
