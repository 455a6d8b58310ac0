"""What must not be lost: stored results, and the steps of trainings up to their checkpoints."""

import re
from collections import defaultdict
from pathlib import Path

import psutil
from project import Project

STEPS, SHORT = 90, 20  # of a training, of one of the depth study
EVERY = 5  # steps between checkpoints
WHOLE = (
    {"models.safetensors", "config.json", "curves.csv", "metrics.csv"},
    {"gains.csv", "norms.csv", "model.json"},
)


class Watch:
    """Looks at a project before and after each kill of a cycle."""

    def __init__(self, project: Project) -> None:
        self.project, self.results = project, project.root / "results"
        self.stored: dict[str, tuple[int, int]] = {}
        self.reached: dict[tuple[str, str], int] = {}  # by study and job

    def entries(self) -> dict[str, tuple[int, int]]:
        """The files of whole entries of the store: their inodes and sizes."""
        files = defaultdict(dict)
        for path in (self.project.root / "store").glob("*.*"):
            if match := re.fullmatch("([0-9a-f]{64})(.+)", path.name):
                stat = path.stat()
                files[match[1]][match[2]] = (stat.st_ino, stat.st_size)
        whole = {key: names for key, names in files.items() if set(names) in WHOLE}
        return {key + name: at for key, names in whole.items() for name, at in names.items()}

    def look(self) -> None:
        """What was stored is stored, and was not made again."""
        now = self.entries()
        lost = {name for name, at in self.stored.items() if now.get(name) != at}
        assert not lost, f"lost or made again: {lost}"
        self.stored = now

    def trained_by(self, process: psutil.Process) -> Path | None:
        """The folder of checkpoints of the job that a process is."""
        for lock in self.results.glob("*/checkpoints/*/lock"):
            if lock.read_text() == str(process.pid):
                return lock.parent
        return None

    def dies(self, folder: Path) -> None:
        """A process is dead that trained: what it had reached is not to be done again."""
        steps = [int(p.stem.removeprefix("step-")) for p in folder.glob("*/step-*.ckpt")]
        run = folder.parents[1].name, folder.name
        self.reached[run] = max([self.reached.get(run, 0), *steps])

    def check_steps(self) -> None:
        """No last process of a job did steps again that were in a checkpoint."""
        for (study, name), reached in self.reached.items():
            timing = self.results / f"benchmarks/{study}_train/{name}.tsv"
            done = int(timing.read_text().split()[6])
            total = SHORT if study == "depth" else STEPS
            assert done <= total - reached, f"{name}: {done} steps, {reached} were done of {total}"
