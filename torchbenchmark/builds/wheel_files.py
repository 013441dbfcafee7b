"""The wheel files of an installed build, got once more from where they came: pip keeps none."""

from collections.abc import Collection
from pathlib import Path

from torchbenchmark.builds.build_errors import CommandFailed
from torchbenchmark.builds.installation import InstalledBuild
from torchbenchmark.builds.pip import download
from torchbenchmark.builds.workshop import Workshop, last_lines, sha256_of
from torchbenchmark.errors import BenchmarkError


def get_wheels(installed: InstalledBuild, python: Path, folder: Path, names: Collection[str]) -> dict[str, Path]:
    """The wheels of distributions of an installed build, by name, in a folder. `python` is its interpreter.

    Raises BenchmarkError if one is not there any more, or is another by now.
    """
    pin = installed.pin
    index, extra_index = (None, pin.index) if pin.extra_index is None else (pin.index, pin.extra_index)
    shop = Workshop(folder, folder / "download.log")
    requirements = [f"{name}=={installed.distributions[name].version}" for name in names]
    try:
        files = {path.name: path for path in download(shop, python, requirements, index, extra_index)}
    except CommandFailed as error:
        raise BenchmarkError(f"{error}: {' | '.join(last_lines(shop.log))}") from error
    found = {}
    for name in names:
        was = installed.distributions[name]
        path = files.get(was.file)
        if path is None or was.sha256 not in (None, sha256_of(path)):
            raise BenchmarkError(f"{was.source}: has no {was.file} (sha256 {was.sha256}) any more, which was installed")
        found[name] = path
    return found
