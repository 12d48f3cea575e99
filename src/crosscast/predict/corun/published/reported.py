"""What paper 004 reports of its power predictors, to be put beside what is found here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from crosscast.predict.corun.published.combinations import TABLE_7

__all__ = ["REPORTED_MAPE"]

_MODELS = ("decision-tree", "boosting", "linear", "mlp", "forest", "svr")

_ROWS = (
    (4.65, 3.9, 7.52, 10, 3.87, 6.7),
    (6.75, 7.5, 10.95, 13, 8.1, 6.7),
    (4.65, 4.22, 6.2, 9.3, 3.72, 7.2),
    (4.55, 3.78, 7.48, 10.92, 3.8, 6.69),
    (4.49, 3.83, 4.57, 8.43, 3.95, 6.6),
    (4.41, 3.76, 4.53, 7.58, 3.88, 6.65),
    (13.5, 11.05, 10.3, 10.48, 11.34, 7.29),
    (9.42, 8.23, 21.17, 11.64, 8.75, 7.09),
    (9.8, 8.76, 12.67, 24.83, 8.89, 7.47),
    (8.68, 7.27, 16, 11.55, 7.49, 7.44),
    (8.09, 7.09, 16.44, 11.93, 7.44, 7.45),
    (9.85, 9.22, 18.2, 21.9, 9.2, 7.47),
    (13.82, 9.08, 12.67, 20.22, 10.76, 7.56),
    (8.8, 7.73, 13.39, 14.38, 7.56, 7.47),
    (9.9, 8.36, 23.4, 13.16, 8.6, 6.94),
    (4.3, 3.78, 7.14, 9.49, 3.59, 6.65),
    (4.65, 3.97, 5.40, 8.40, 3.41, 7.08),
    (4.83, 4.10, 6.39, 10.63, 3.68, 7.05),
    (4.75, 3.78, 16.66, 12.71, 3.66, 6.97),
    (4.17, 3.62, 16.86, 13.95, 3.66, 7.01),
)

REPORTED_MAPE: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        combination.name: MappingProxyType(dict(zip(_MODELS, row, strict=True)))
        for combination, row in zip(TABLE_7, _ROWS, strict=True)
    }
)
"""Mean absolute percentage error of power by combination and kind of model (table 7).

Two applications on a Tesla T4, leaving one benchmark out; in per cent.
"""
