"""The record of a run: its core-hours."""

from pathlib import Path

from page_recipes import config

from normscope.machine import run_record


def test_core_hours_are_the_cpu_time_of_the_jobs_that_were_timed(tmp_path: Path):
    recall = config().recall
    jobs = ["recall_tables", *(f"recall_train/{name}" for name in recall.trainings())]
    jobs += [f"recall_probe/{name}" for name in recall.probes()]
    seconds = dict.fromkeys(jobs, "36.0") | {
        jobs[1]: "NA",
        "recall_train/other": "5",
        "claims": "5",
    }
    del seconds[jobs[2]]
    (tmp_path / "recall/tables").mkdir(parents=True)
    (tmp_path / "recall/tables/runs.csv").touch()
    for job, of_job in seconds.items():
        path = tmp_path / f"benchmarks/{job}.tsv"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"s\tcpu_time\n1.0\t{of_job}\n")
    record = run_record(config().recall, tmp_path)
    assert record["core_hours"] == round((len(jobs) - 2) * 36 / 3600, 4)
    assert record["unmeasured_jobs"] == 2
