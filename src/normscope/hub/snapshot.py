"""The files of a hub model, in the hub's own cache. No torch.

They are fetched by a process of its own: a server that sends a byte a second outlives every timeout
of its client, whose threads cannot be ended.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import huggingface_hub
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from normscope.errors import Explained
from normscope.hub.recipe import HubSource

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SAFETENSORS = (SINGLE, INDEX, "model-*-of-*.safetensors")
PICKLED = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
TEXT = ("*.json", "*.txt", "*.model", "*.jinja")  # configuration and tokenizer


class Unavailable(Explained):
    """A model could not be had: says why, and the way out."""


def snapshot(source: HubSource) -> Path:
    """The directory of a model in the cache: safetensors, or else pickled weights.

    Raises:
        Unavailable: the hub does not give it, or not within the time limit.
    """
    command = [sys.executable, "-m", __name__, source.model_dump_json()]
    # with the log as its stderr it would hold this job's lock, and outlive a kill
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    sys.stderr.write(done.stderr)
    if done.returncode == -signal.SIGALRM:
        reason = (
            f"no end after {source.timeout_s:g} s, its timeout_s: start again, which goes on from "
            "what has come, or raise it"
        )
    elif done.returncode:
        reason = f"the process that fetches it ended with {done.returncode}"
    else:
        answer = json.loads(done.stdout)
        if "directory" in answer:
            return Path(answer["directory"])
        reason = answer["reason"]
    raise Unavailable(f"{source}: {reason}")


def _fetch(source: HubSource) -> dict[str, str]:
    """The directory, or the reason why there is none."""
    page = f"https://huggingface.co/{source.repo}"
    try:
        for weights in (SAFETENSORS, PICKLED):
            directory = snapshot_download(
                source.repo,
                revision=source.revision,
                allow_patterns=[*TEXT, *weights],
                ignore_patterns=["*/*"],
            )
            if any(list(Path(directory).glob(pattern)) for pattern in weights):
                return {"directory": directory}
        reason = "it has weights in no known format"
    except GatedRepoError:
        reason = f"it is gated: accept its terms on {page}, then `hf auth login` or set HF_TOKEN"
    except RevisionNotFoundError:
        reason = f"it has no revision {source.revision}: see {page}/tree/main"
    except RepositoryNotFoundError:
        reason = "the hub does not have it, or not for you: mend the name, or `hf auth login`"
    except LocalEntryNotFoundError as e:
        reason = f"the hub does not answer, and its cache on this machine lacks it ({_cause(e)})"
    except Exception as e:  # whatever its client meets, the other models go on
        reason = f"the hub's client failed ({_cause(e)})"
    return {"reason": reason}


def _cause(e: BaseException) -> str:
    """The first line of the first error of a chain, which says what went wrong."""
    while e.__cause__ is not None:
        e = e.__cause__
    return f"{type(e).__name__}: {str(e).strip().partition(chr(10))[0]}"


def _main() -> None:
    source = HubSource.model_validate_json(sys.argv[1])
    huggingface_hub.logging.set_verbosity_error()  # its warnings repeat what a server says
    signal.setitimer(signal.ITIMER_REAL, source.timeout_s)  # ends this process, threads and all
    print(json.dumps(_fetch(source)))


if __name__ == "__main__":
    _main()
