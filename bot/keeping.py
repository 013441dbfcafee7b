"""Keeps what is needed to measure tonight's build again some other night: its pin, and its wheels."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from baselines.kept_wheels import KeptWheel, keep
from baselines.store import Store
from baselines.stored_builds import store_build
from bot.config import NightlyConfig
from torchbenchmark.builds.folders import remove
from torchbenchmark.builds.installation import InstalledBuild, installed_build
from torchbenchmark.builds.wheel_files import get_wheels
from torchbenchmark.errors import SentinelError
from torchbenchmark.quantity import counted
from torchbenchmark.records import Build
from torchbenchmark.terminal import console


def keep_build(config: NightlyConfig, store: Store, build: Build) -> None:
    """Keep the build that was measured and that lies in `work`. What goes wrong is told, and stops nothing: the night
    is stored, and the next night of this build tries again."""
    if config.build is None:
        return
    folder = config.work / "build"
    try:
        installed = installed_build(folder)
        if installed is None or not _is_of(build, installed, folder):
            raise SentinelError(f"{folder}: holds another build by now")
        store_build(store, build.id, installed.pin, installed.distributions)
        if config.keep_wheels:
            _keep_wheels(store, build, installed, config.work)
    except SentinelError as problem:
        console.print(f"build {build.id} is not kept: {problem}", markup=False, style="yellow")


def _is_of(build: Build, installed: InstalledBuild, folder: Path) -> bool:
    """Whether the installation is what was measured."""
    versions = {name: one.version for name, one in installed.distributions.items()}
    return Path(build.interpreter) == folder.absolute() / "bin" / "python" and build.wheels.items() <= versions.items()


def _keep_wheels(store: Store, build: Build, installed: InstalledBuild, work: Path) -> None:
    unknown = sorted(name for name, one in installed.distributions.items() if one.sha256 is None)
    if unknown:
        raise SentinelError(f"pip did not tell the SHA-256 of {', '.join(unknown)}; a newer pip does")
    names = {one.file: name for name, one in installed.distributions.items()}
    wheels = [KeptWheel(file=one.file, sha256=one.sha256 or "") for one in installed.distributions.values()]
    for left in work.glob(".wheels-*"):  # by one that was killed
        remove(left)
    with TemporaryDirectory(dir=work, prefix=".wheels-") as scratch:

        def get(missing: Collection[KeptWheel]) -> dict[str, Path]:
            python = Path(build.interpreter)
            found = get_wheels(installed, python, Path(scratch), [names[wheel.file] for wheel in missing])
            return {path.name: path for path in found.values()}

        stored = keep(store, build.id, wheels, get)
    if stored:
        console.print(f"kept {counted(len(stored), 'wheel')} of build {build.id} in {store.location}", markup=False)
