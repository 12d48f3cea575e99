"""The page as a whole: its sections in order, and the frame around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import crosscast
from crosscast.data.files import whole_file
from crosscast.errors import InputError
from crosscast.report.page.application import cells, closer, profiles
from crosscast.report.page.errors import forecasts, heat_map, in_full, in_short, sureness
from crosscast.report.page.markup import Markup, element, joined, paragraph
from crosscast.report.page.subject import Subject, check_application, holdings

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset
    from crosscast.evaluation.loop import Progress


# The page runs nothing and loads nothing, whatever the names in a dataset are.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_Section = tuple[str, str, tuple[Callable[[Subject], Markup], ...]]
_SECTIONS: tuple[_Section, ...] = (
    ("short", "In short", (in_short,)),
    ("dataset", "What the dataset holds", (holdings,)),
    ("forecasts", "Predicted and measured times of applications that the model never saw", (forecasts,)),
    ("errors", "Where it errs", (heat_map,)),
    ("sureness", "How sure it is, and which device it recommends", (sureness,)),
    ("closer", "A closer look at one application", (closer, profiles, cells)),
    ("scores", "Scores, and what they say", (in_full,)),
)


def page_of(subject: Subject) -> str:
    """The page as HTML."""
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in _SECTIONS]
    sections = [
        element(
            "section",
            joined([element("h2", title), *(part(subject) for part in parts)], "\n"),
            id=name,
        )
        for name, title, parts in _SECTIONS
    ]
    body = element(
        "body",
        joined(
            [
                element("header", element("h1", subject.title), element("nav", element("ul", *links))),
                element("main", joined(sections, "\n")),
                element("footer", paragraph(_made_with(subject))),
            ],
            "\n",
        ),
    )
    html = element("html", joined([_head(subject.title), body], "\n"), lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def _head(title: str) -> Markup:
    style = resources.files("crosscast.report.page").joinpath("style.css").read_text(encoding="utf-8")
    return element(
        "head",
        joined(
            [
                element("meta", charset="utf-8"),
                element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
                element("meta", name="color-scheme", content="light dark"),
                element("title", title),
                element("style", Markup(f"\n{style}")),
            ],
            "\n",
        ),
    )


def _made_with(subject: Subject) -> str:
    evaluation = subject.study
    return (
        f"Made with Crosscast {crosscast.__version__}; {subject.result.model}, {evaluation.folds}, seed "
        f"{evaluation.seed}."
    )


def write_report(
    dataset: Dataset,
    path: str | Path,
    models: Sequence[str] | None = None,
    *,
    application: str | None = None,
    title: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Subject:
    """Write a page about a dataset, and how well the times of its kernels are predicted.

    Parameters
    ----------
    dataset
        Profiles and records.
    path
        The page: one file of HTML that needs nothing else.
    models
        Names of models of times, or ``["all"]``; the default one by default. The page shows the one that errs
        least, and the baselines beside it.
    application
        The application to look at closely; by default the one whose median error is in the middle.
    title
        Title of the page.
    seed, jobs, cache, progress
        As `crosscast.evaluate` has them.

    Returns
    -------
    Subject
        What is in the page; `to_dict()` has it for JSON.

    Raises
    ------
    InputError
        If the dataset has not what a page needs, there is no such application or model, or the page cannot be
        written.
    MissingExtraError
        If matplotlib, or what fits models, is not installed.
    """
    from crosscast.predict.time.data import grid_of
    from crosscast.questions import evaluate

    if application is not None:
        # Before the long run.
        check_application(grid_of(dataset), application)
    found = evaluate(dataset, "time", models, seed=seed, jobs=jobs, cache=cache, progress=progress)
    # Whoever gets the page knows the dataset by its name, wherever it was.
    named = replace(found, label=Path(dataset.label).resolve().name)
    subject = Subject.of(dataset, named, application=application, title=title)
    write_page(subject, Path(path))
    return subject


def write_page(subject: Subject, path: Path) -> None:
    """Write the page."""
    text = page_of(subject)
    try:
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"page: cannot write {path} ({error.strerror or error})") from error
