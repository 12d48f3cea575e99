"""The classification tree of the published model (Figure 3 of Bailey et al. 2014)."""

from __future__ import annotations

from typing import Any

from crosscast.predict.configuration.bailey2014 import TreeNode
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREY, heading

__all__ = ["tree_figure"]

_WIDTH_OF_LEAF = 2.3


def tree_figure(nodes: tuple[TreeNode, ...], title: str) -> Any:
    """Questions as boxes, left for yes; leaves say the cluster and how many training kernels came there.

    Parameters
    ----------
    nodes
        The nodes, the root first.
    title
        What it is of.
    """
    places = _places(nodes)
    leaves = sum(node.feature is None for node in nodes)
    deepest = -min(y for _, y in places)
    figure = new_figure(max(6.0, _WIDTH_OF_LEAF * leaves), 1.6 + 1.15 * deepest)
    axes = figure.subplots()
    for number, node in enumerate(nodes):
        for below, answer in ((node.left, "yes"), (node.right, "no")):
            if below is not None:
                _branch(axes, places[number], places[below], answer)
    for place, node in zip(places, nodes, strict=True):
        leaf = node.feature is None
        axes.text(
            *place,
            _leaf(node) if leaf else _question(node),
            ha="center",
            va="center",
            fontsize=8.5,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": "#e6f0f7" if leaf else "white",
                "edgecolor": BLUE,
            },
            zorder=3,
        )
    axes.set_xlim(-0.6, leaves - 0.4)
    axes.set_ylim(-deepest - 0.45, 0.45)
    axes.set_axis_off()
    heading(figure, title)
    return figure


def _places(nodes: tuple[TreeNode, ...]) -> list[tuple[float, float]]:
    """Where to draw each node: leaves side by side, questions above the middle of what is below them."""
    places: dict[int, tuple[float, float]] = {}

    def place(number: int, depth: int, left: int) -> int:
        node = nodes[number]
        if node.left is None or node.right is None:
            places[number] = (float(left), -float(depth))
            return left + 1
        end = place(node.right, depth + 1, place(node.left, depth + 1, left))
        places[number] = ((places[node.left][0] + places[node.right][0]) / 2, -float(depth))
        return end

    place(0, 0, 0)
    return [places[number] for number in range(len(nodes))]


def _branch(axes: Any, above: tuple[float, float], below: tuple[float, float], answer: str) -> None:
    axes.plot([above[0], below[0]], [above[1], below[1]], color=GREY, linewidth=1, zorder=1)
    axes.text(
        0.45 * above[0] + 0.55 * below[0],
        0.45 * above[1] + 0.55 * below[1],
        answer,
        ha="center",
        va="center",
        fontsize=8,
        color="#555555",
        bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _question(node: TreeNode) -> str:
    name = str(node.feature).replace(" at sample", "\nat sample")
    return f"{name}\n≤ {node.threshold:.5g}?"


def _leaf(node: TreeNode) -> str:
    kernels = sum(node.counts)
    return f"cluster {node.cluster}\n{kernels} kernel{'' if kernels == 1 else 's'}"
