"""Checks that stored results and checkpointed steps are not lost."""

from collections import defaultdict
from pathlib import Path

import psutil
from project import Project

from normscope.io.files import SUMS
from normscope.io.store import KEY, keys, read_sums

STEPS, SHORT = 90, 20  # of a training, of one of the depth study
EVERY = 5  # steps between checkpoints


class Watch:
    """Looks at a project before and after each kill of a cycle."""

    def __init__(self, project: Project) -> None:
        self.project, self.results = project, project.root / "results"
        self.stored: dict[str, tuple[int, int]] = {}
        self.reached: dict[Path, int] = defaultdict(int)  # by folder of checkpoints

    def entries(self) -> dict[str, tuple[int, int]]:
        """The files of whole entries of the store: their inodes and sizes."""
        store, found = self.project.root / "store", {}
        for key in keys(store) if store.is_dir() else ():
            files = {path.name[KEY:]: path.stat() for path in store.glob(f"{key}*")}
            if SUMS in files and files.keys() == {SUMS, *read_sums(store / f"{key}{SUMS}")}:
                found |= {key + name: (s.st_ino, s.st_size) for name, s in files.items()}
        return found

    def look(self) -> None:
        """Check that stored results are unchanged and were not made again."""
        now = self.entries()
        lost = {name for name, at in self.stored.items() if now.get(name) != at}
        assert not lost, f"lost or made again: {lost}"
        self.stored = now

    def trained_by(self, process: psutil.Process) -> Path | None:
        """The folder of checkpoints of the training that a process runs."""
        for lock in self.results.glob("*/checkpoints/*/lock"):
            if lock.read_text() == str(process.pid):
                return lock.parent
        return None

    def dies(self, folder: Path) -> None:
        """Record the checkpointed steps of a killed training, which must not be repeated."""
        for path in folder.glob("*/step-*.ckpt"):
            step = int(path.stem.removeprefix("step-"))
            self.reached[path.parent] = max(self.reached[path.parent], step)

    def check(self) -> None:
        """Check that no training repeated steps that a checkpoint had."""
        assert self.stored
        for job in {folder.parent for folder in self.reached}:
            study, parts = job.parents[1].name, list(job.glob("*x*"))  # one part after the other
            timing = self.results / f"benchmarks/{study}_train/{job.name}.tsv"
            done = int(timing.read_text().split()[6])
            total = len(parts) * (SHORT if study == "depth" else STEPS)
            reached = sum(self.reached[part] for part in parts)
            assert done <= total - reached, f"{job}: {done} steps, {reached} were done of {total}"
