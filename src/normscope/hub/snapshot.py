"""Download the files of a hub model into the cache of huggingface_hub. Does not import torch.

The download runs in a separate process, which a timer can end: a server that sends one byte per
second never triggers a timeout of the hub's client, and the client's threads cannot be stopped.
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
    """A model is not available; the message gives the reason and the way out."""


def snapshot(source: HubSource) -> Path:
    """Download a model, and return its directory in the cache.

    Pickled weights are downloaded only if there are no safetensors.

    Raises:
        Unavailable: the hub does not provide the model, or not within the time limit.
    """
    command = [sys.executable, "-m", __name__, source.model_dump_json()]
    # if it inherited the log as stderr, it would keep this job's lock after the job is killed
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    sys.stderr.write(done.stderr)
    if done.returncode == -signal.SIGALRM:
        reason = (
            f"not complete after {source.timeout_s:g} s, its timeout_s: start again to resume the "
            "download, or raise timeout_s"
        )
    elif done.returncode:
        reason = f"the process that downloads it ended with status {done.returncode}"
    else:
        answer = json.loads(done.stdout)
        if "directory" in answer:
            return Path(answer["directory"])
        reason = answer["reason"]
    raise Unavailable(f"{source}: {reason}")


def _fetch(source: HubSource) -> dict[str, str]:
    """The directory of the model, or the reason why it is not available."""
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
    return {"reason": reason}


def _cause(e: BaseException) -> str:
    """The first line of the original error of a chain."""
    while e.__cause__ is not None:
        e = e.__cause__
    return f"{type(e).__name__}: {str(e).strip().partition(chr(10))[0]}"


def _main() -> None:
    source = HubSource.model_validate_json(sys.argv[1])
    huggingface_hub.logging.set_verbosity_error()  # warnings would repeat text from the server
    signal.setitimer(signal.ITIMER_REAL, source.timeout_s)  # ends this process with all its threads
    print(json.dumps(_fetch(source)))


if __name__ == "__main__":
    _main()
