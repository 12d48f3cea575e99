"""The fast Fourier transform application."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close

_GROUP = 64
_RADICES = (2, 4, 8, 16)


class Fft(Application):
    """Transform a complex signal four times over, each time with another radix: 2, 4, 8 and 16.

    Spectral methods among the dwarfs: Stockham's out-of-place passes between two buffers. Where the
    number of points is no power of the radix, a last pass of a smaller radix makes up for it. Each
    transform takes the last one's result, so that all four share one working set; the result of each
    is kept for the check.

    C. Van Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, section 1.7,
    doi:10.1137/1.9781611970999. There are ``1 << log2_points`` points, at least 16.
    """

    name = "fft"
    kernels = tuple(f"fftRadix{radix}Kernel" for radix in _RADICES)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        log2_points = parameters["log2_points"]
        n = 1 << log2_points
        random = np.random.default_rng(seed)
        # The device's float2 are pairs of floats: real and imaginary part.
        self.signal = random.standard_normal((n, 2), np.float32)
        self.buffers = np.zeros_like(self.signal), np.zeros_like(self.signal)
        self.arrays = self.buffers
        # The last one stays where it is: a copy would be half of the working set again.
        self._copies = [np.zeros_like(self.signal) for _ in _RADICES[:-1]]
        self.spectra = [*self._copies, self.buffers[0]]
        self._passes = [_passes(log2_points, radix) for radix in _RADICES]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """The longest signal of a power of two points that fits twice, 8 bytes a point."""
        return {"log2_points": (nbytes // 16).bit_length() - 1}

    def run(self, queue: Queue) -> None:
        """Transform with each radix in turn, to and fro between the buffers, and keep each spectrum."""
        source, target = self.buffers
        source[:] = self.signal
        queue.write(source)
        for passes, copy in zip(self._passes, [*self._copies, None], strict=True):
            joined = 1
            for radix in passes:
                items = len(source) // radix
                sizes = (items,), (min(items, _GROUP),)
                queue.launch(f"fftRadix{radix}Kernel", *sizes, source, target, np.int32(joined))
                joined *= radix
                source, target = target, source
            queue.read(source)
            if copy is not None:
                copy[:] = source
        self.spectra[-1] = source

    def check(self) -> None:
        """Compare each spectrum with SciPy's in double precision."""
        for radix, found, expected in zip(_RADICES, self.spectra, self._expected(), strict=True):
            # Rounding spreads over the whole spectrum: what counts is its mean magnitude.
            magnitude = float(np.linalg.norm(expected) / np.sqrt(len(expected)))
            what = f"spectrum of radix {radix}"
            expect_close(what, found.view(np.complex64)[:, 0], expected, rtol=0, atol=1e-5 * magnitude)

    def _expected(self) -> Iterator[Array]:
        """One spectrum after the other: all of them together would be several times the working set."""
        from scipy.fft import fft

        spectrum: Array = self.signal.view(np.complex64)[:, 0].astype(np.complex128)
        for _ in _RADICES:
            spectrum = fft(spectrum, overwrite_x=True)
            yield spectrum


def _passes(log2_points: int, radix: int) -> list[int]:
    """Return the radices of a transform's passes: one as often as it fits, and the remainder."""
    passes, rest = divmod(log2_points, radix.bit_length() - 1)
    return [radix] * passes + [1 << rest] * (rest > 0)
