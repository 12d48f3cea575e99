"""Evaluation of models on held-out groups: folds, scores, and their intervals.

A question has its models, folds and options, and says how it is evaluated and trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, Unpack

from crosscast.data.fields import as_sequence
from crosscast.errors import InputError, expect_known

if TYPE_CHECKING:
    from crosscast.evaluation.loop import SeededRun

JSON_VERSION = 1
"""Version of the form of evaluations in JSON, the same for all questions; `schema` has the forms."""

Note = Callable[[str], None]
"""Called with a sentence about the data, such as the devices that are left out."""

Options = TypeVar("Options")
Data = TypeVar("Data")
EvaluationOptions = TypeVar("EvaluationOptions")
TrainingOptions = TypeVar("TrainingOptions")
EvaluationT = TypeVar("EvaluationT", covariant=True)
TrainedT = TypeVar("TrainedT", covariant=True)


class Question(ABC, Generic[Data, EvaluationOptions, TrainingOptions, EvaluationT, TrainedT]):
    """A question that models answer, with `crosscast.train` and `crosscast.evaluate` for it.

    Its options are frozen dataclasses, shared by keyword arguments, commands and requests.
    """

    name: ClassVar[str]
    folds: ClassVar[tuple[str, ...]]  # The first is the default
    evaluation_options: type[EvaluationOptions]
    training_options: type[TrainingOptions]
    all_models: ClassVar[Sequence[str]]  # Names of its models, and of the default one
    best_model: ClassVar[str]

    def models(self, data: Data) -> Sequence[str]:
        """Names of the models for such data."""
        return self.all_models

    def default_model(self, data: Data) -> str:
        """Name of the default model."""
        return self.best_model

    @abstractmethod
    def evaluate(
        self,
        data: Data,
        models: Sequence[str] | None,
        folds: str,
        options: EvaluationOptions,
        **run: Unpack[SeededRun],
    ) -> EvaluationT:
        """Score models, the default one for ``None``, on groups that are held out in turn."""

    @abstractmethod
    def train(self, data: Data, model: str, options: TrainingOptions, **run: Unpack[SeededRun]) -> TrainedT:
        """Fit a model, and evaluate it with groups held out in turn."""

    def check_folds(self, folds: str | None) -> str:
        """The folds of a name, the default ones for ``None``."""
        if folds is None:
            return self.folds[0]
        expect_known(folds, self.folds, where="folds")
        return folds

    def check_model(self, data: Data, model: str | None) -> str:
        """The model of a name, the default one for ``None``."""
        if model is None:
            return self.default_model(data)
        known = self.models(data)
        expect_known(model, known, where="model")
        return model


def options_of(kind: type[Options], given: Mapping[str, object], question: str) -> Options:
    """Options from keyword arguments.

    Raises
    ------
    InputError
        If there is no option of a name, such as a misspelt one.

    Examples
    --------
    >>> from crosscast.evaluation.time import TimeTrainingOptions
    >>> options_of(TimeTrainingOptions, {"level": 0.8}, "time")
    TimeTrainingOptions(level=0.8)
    """
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            expected = f"some of {', '.join(known)} for the question {question}"
            raise InputError.of(where="options", expected=expected, found=repr(name))
    return kind(**given)


def names_of(names: str | Sequence[str] | None) -> list[str] | None:
    """Names as a list; ``None`` stays."""
    if names is None:
        return None
    several: Sequence[str] = as_sequence(names)
    return list(several)


def with_baselines(
    names: Sequence[str] | None, known: Sequence[str], default: str, baselines: Sequence[str]
) -> list[str]:
    """Names of models, the default one for ``None``, each once, with the baselines after them."""
    chosen = [default] if names is None else list(names)
    if chosen == ["all"]:
        chosen = list(known)
    expect_known(chosen, known, where="models", words="all or some of")
    return list(dict.fromkeys([*chosen, *baselines]))
