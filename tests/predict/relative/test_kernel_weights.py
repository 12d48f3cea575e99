import numpy as np

from crosscast.predict.relative.data import kernel_weights
from made_vectors import made_vectors


def test_kernels_weigh_the_same_however_often_they_were_run() -> None:
    seen = made_vectors(applications=3, kernels=2).observations
    seen = seen.rows(np.array([0, 1, 2, 3, 4, 4, 4, 5, 9]))
    weights = kernel_weights(seen)
    kernels = np.array([f"{one} {two}" for one, two in zip(seen.application, seen.kernel, strict=True)])
    assert {weights[kernels == kernel].sum().round(12) for kernel in kernels} == {1.0}


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    seen = made_vectors(applications=2, kernels=1, sizes=1).observations
    assert kernel_weights(seen).sum() == 2
