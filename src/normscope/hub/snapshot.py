"""Download the files of a hub model into the cache of huggingface_hub. Does not import torch.

The download runs in a separate process, which a timer can end: a server that sends one byte per
second never triggers a timeout of the hub's client, and the client's threads cannot be stopped.
"""

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

SAFETENSORS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
PICKLED = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
TEXT = ("*.json", "*.txt", "*.model", "*.jinja")  # configuration and tokenizer


def snapshot(source: HubSource) -> Path:
    """Download a model, and return its directory in the cache, which is named by the commit.

    Pickled weights are downloaded only if there are no safetensors.
    """
    command = [sys.executable, "-m", __name__, source.model_dump_json()]
    # if it inherited the log as stderr, it would keep this job's lock after the job is killed
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return Path(done.stdout.splitlines()[-1])
    if done.returncode == -signal.SIGALRM:
        reason = (
            f"not complete after {source.timeout_s:g} s, its timeout_s: start again to resume the "
            "download, or raise timeout_s"
        )
    else:
        last = (done.stderr.splitlines() or [""])[-1]
        reason = last or f"the process that downloads it ended with status {done.returncode}"
    raise Explained(f"{source}: {reason}")


def _fetch(source: HubSource) -> str:
    """The directory of the model; where there is none, the process ends with the reason."""
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
                return directory
        reason = "it has no weights in a known format"
    except GatedRepoError:
        reason = f"it is gated: accept its terms on {page}, then `hf auth login` or set HF_TOKEN"
    except RevisionNotFoundError:
        reason = f"it has no revision {source.revision}: see {page}/tree/main"
    except RepositoryNotFoundError:
        reason = "it does not exist, or you have no access: correct its name, or `hf auth login`"
    except LocalEntryNotFoundError as e:
        reason = f"the hub does not answer, and the local cache lacks the model ({_cause(e)})"
    except Exception as e:  # no failure of the client may stop the other models
        reason = f"the hub's client failed ({_cause(e)})"
    sys.exit(reason)


def _cause(e: BaseException) -> str:
    """The first line of the original error of a chain."""
    while e.__cause__ is not None:
        e = e.__cause__
    return f"{type(e).__name__}: {str(e).strip().partition(chr(10))[0]}"


if __name__ == "__main__":
    source = HubSource.model_validate_json(sys.argv[1])
    huggingface_hub.logging.set_verbosity_error()  # warnings would repeat text from the server
    signal.setitimer(signal.ITIMER_REAL, source.timeout_s)  # ends this process with all its threads
    print(_fetch(source))
