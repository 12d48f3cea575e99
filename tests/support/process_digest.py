"""What a fitted process is, in one word: run as a program, that of a made-up machine."""

import hashlib

from crosscast.prediction.configuration.process import FittedProcess, ProcessModel, ProcessPredictor
from support.surfaces import made_surfaces

SURFACES = made_surfaces(4, noise=0.01)
SAMPLES = (11, 0)
SEED = 3


def digest(fitted: ProcessPredictor | FittedProcess) -> str:
    found = hashlib.sha256()
    state = (fitted if isinstance(fitted, FittedProcess) else fitted.fitted).state()
    for name, array in sorted(state.items()):
        found.update(name.encode() + array.tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(ProcessModel().fit(SURFACES, SAMPLES, SEED)))
