"""What Snakemake would run again after a change: forks of a dry run that waits.

Most of a dry run's second does not depend on the change. One waits where the configuration is
validated, before the rules are read (``config``), one where all jobs are known and the question
is which must run (``content``). Each change is a fork of it, which goes on as every dry run does.
"""

import asyncio
import atexit
import hashlib
import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """The jobs of a DAG: each is its rule and its wildcards' values."""

    needs: dict[str, list[str]]
    decided_by: dict[str, str]  # inputs and parameters
    wanted: set[str]

    def after(self, first: set[str]) -> set[str]:
        """These jobs, and all that read what they make."""
        reached, todo = set(), set(first)
        while todo:
            reached |= todo
            todo = {job for job, needs in self.needs.items() if todo & set(needs)} - reached
        return reached


class DryRun:
    """A dry run in a project, waiting."""

    def __init__(self, root: Path, env: dict[str, str], point: str) -> None:
        self.root, self.env, self.point = root, env, point

    @cached_property
    def process(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", __file__, self.point]
        process = subprocess.Popen(
            command, cwd=self.root, env=self.env, text=True, stdin=pipe, stdout=pipe
        )
        atexit.register(process.communicate)
        return process

    def plan(self, config: dict[str, Any] | None = None) -> Plan:
        """The jobs with this configuration, with the files as they are now."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(config), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        assert answer, "the dry run failed: its reason is on stderr"
        needs, decided_by, wanted = answer
        return Plan(needs, decided_by, set(wanted))


def _names(dag: Any) -> dict[Any, str]:
    """Every job, but for the targets that are none."""
    return {
        job: f"{job.rule.name} {'-'.join(job.wildcards_dict.values())}".rstrip()
        for job in dag.jobs
        if not job.is_norun
    }


def _edges(dag: Any) -> tuple[dict[str, list[str]], dict[str, str]]:
    """What each job needs, and a word for what decides it."""
    names, store = _names(dag), dag.workflow.persistence
    needs = {
        name: [names[needed] for needed in dag.job_dependencies(job)] for job, name in names.items()
    }
    decided_by = {
        name: hashlib.sha256(repr([sorted(job.input), store._params(job)]).encode()).hexdigest()
        for job, name in names.items()
    }
    return needs, decided_by


def _in_place(_: Any, source: Any) -> Path:
    """Forks share a cache of rule files, and each is to read them as they are."""
    return Path(source.get_path_or_uri(secret_free=True))


def serve(point: str) -> None:
    """A dry run that waits at a point; a line in, a configuration or null; a line out, a plan."""
    import pandas  # noqa: F401, PLC0415 - what Snakemake imports later, when it reads a Snakefile
    import snakemake.report  # noqa: F401, PLC0415
    from snakemake.cli import main  # noqa: PLC0415
    from snakemake.dag import DAG  # noqa: PLC0415
    from snakemake.sourcecache import SourceCache  # noqa: PLC0415

    sys.path.insert(0, str(Path("src").resolve()))
    import normscope.config as configuration  # noqa: PLC0415
    from normscope.io import provenance  # noqa: PLC0415
    from normscope.io.pins import pinned  # noqa: PLC0415

    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    update_needrun, load = DAG.update_needrun, configuration.load

    def forks() -> Any:
        """In each fork what is asked; the process itself does not come back."""
        for line in questions:
            child = os.fork()
            if not child:
                return json.loads(line)
            _, status = os.waitpid(child, 0)
            if status:
                print("null", file=answers, flush=True)
        os._exit(0)

    async def answer(dag: Any, create_inventory: bool = False) -> None:
        edges = None
        if point == "content":
            await update_needrun(dag, create_inventory)  # what Snakemake reads once stays read
            edges = _edges(dag)
            forks()
            cache = dag.workflow.iocache
            for known in (cache.mtime, cache.size, cache.checksum):
                known.clear()
            asyncio.run(update_needrun(dag, create_inventory))  # the running loop is not a fork's
        else:
            await update_needrun(dag, create_inventory)
        wanted = [name for job, name in _names(dag).items() if dag.needrun(job)]
        print(json.dumps([*(edges or _edges(dag)), wanted]), file=answers, flush=True)
        os._exit(0)

    def load_edited(raw: dict[str, Any]) -> Any:
        studies = Path("src/normscope/studies").glob("*/*.py")
        for file in (*Path("scripts").rglob("*.py"), *studies):  # what is read once stays read
            pinned(provenance.closure(file), Path("constraints.txt"))
        config = forks()
        for known in (provenance._facts, provenance._imports):
            known.cache_clear()  # files may have changed; what was parsed is kept by content
        if config is not None:
            raw.clear()
            raw.update(config)
        return load(raw)

    DAG.update_needrun = answer  # type: ignore[method-assign]
    SourceCache._cache = _in_place  # type: ignore[method-assign]
    if point == "config":
        configuration.load = load_edited
    sys.argv = ["snakemake", "-n", "--quiet", "--cores", "2"]
    main()


if __name__ == "__main__":
    serve(sys.argv[1])
