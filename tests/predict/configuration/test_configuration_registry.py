"""Models of configurations by name: each learns, and can be kept."""

from pathlib import Path

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.errors import InputError
from crosscast.predict.configuration.artefact import load_configuration_model, save_configuration_model
from crosscast.predict.configuration.models import CONFIGURATION_MODELS, configuration_model_named
from kept_chooser import fitted_chooser


@pytest.mark.parametrize("name", CONFIGURATION_MODELS)
def test_every_model_has_its_name_and_can_be_kept(name: str, tmp_path: Path) -> None:
    surfaces = made_surfaces(4, noise=0.01)
    model = configuration_model_named(name)
    assert model.name == name
    fitted = model.fit(surfaces, (11, 0))
    save_configuration_model(fitted, tmp_path / "model", fitted_chooser()[1])
    observed = surfaces.observed(0, (11, 0))
    before, after = (
        each.forecast(observed) for each in (fitted, load_configuration_model(tmp_path / "model"))
    )
    np.testing.assert_array_equal(after.power.centre, before.power.centre)
    np.testing.assert_array_equal(after.time.quantile(0.95), before.time.quantile(0.95))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"model: expected one of model, published, .*, found 'magic'"):
        configuration_model_named("magic")
