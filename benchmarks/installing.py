"""Install the wheel in an empty environment: ``python -m benchmarks.installing [EXTRA...]``.

Builds it, installs it as ``pip install 'crosscast[EXTRA,...]'`` does (by default without an extra, and then
with ``report``), runs ``pip check`` and a first forecast, and prints sizes and times. Needs hatchling and a
package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import text_table

ROOT = Path(__file__).parents[1]
FORECAST = (
    *("predict", "examples/saxpy.cu", "--kernel", "saxpy<float>", "--grid", "4096", "--block", "256"),
    *("--arg", "int=1048576", "--arg", "float=2", "--arg", "float:1048576:uniform", "--arg", "float:1048576"),
)
_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "bin")
_LARGEST = 6


def main() -> int:
    """Print a table for each set of extras."""
    asked = [",".join(sys.argv[1:])] if sys.argv[1:] else ["", "report"]
    with TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        print(f"wheel: {wheel.stat().st_size / 1e6:.2f} MB\n")
        for extras in asked:
            report(wheel, extras, Path(folder) / f"environment-{extras}")
    return 0


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def report(wheel: Path, extras: str, environment: Path) -> None:
    """Install, check, forecast twice, and print what that took."""
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    # Nothing of this checkout may be found.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean["XDG_CACHE_HOME"] = str(environment / "cache")
    what = f"{wheel}[{extras}]" if extras else str(wheel)

    def run(*words: str) -> float:
        start = time.perf_counter()
        subprocess.run([python, "-m", *words], cwd=ROOT, env=clean, check=True, capture_output=True)
        return time.perf_counter() - start

    installed_s = run("pip", "install", "--quiet", "--disable-pip-version-check", what)
    run("pip", "check")
    first_s, again_s = run("crosscast", *FORECAST), run("crosscast", *FORECAST)
    packages = next((environment / "lib").glob("python*/site-packages"))
    sizes: Counter[str] = Counter()
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0].partition("-")[0].removesuffix(".libs")
        if path.is_file() and "__pycache__" not in path.parts and name not in _OURS:
            sizes[name] += path.stat().st_size
    largest = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in sizes.most_common(_LARGEST))
    print(f"crosscast[{extras}]" if extras else "crosscast, without an extra")
    rows = [
        ["installed, with dependencies", f"{sizes.total() / 1e6:.0f} MB ({largest})"],
        ["pip install", f"{installed_s:.0f} s"],
        ["pip check", "clean"],
        ["first forecast, in an empty cache", f"{first_s:.1f} s"],
        ["again", f"{again_s:.1f} s"],
    ]
    print(text_table(["", ""], rows), end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
