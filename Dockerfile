# The packages of constraints.txt, and nothing of the project: Snakemake brings its files itself.
# docs/howto/executors.md says how this is built and used.
FROM docker.io/library/debian:bookworm-slim

# git: Snakemake asks it for the project's files; rsync: the storage plugin fs copies with it. Debian
# keeps no older versions, so that a pinned one would soon not be found
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git python3-venv rsync \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 normscope
USER 1000
WORKDIR /home/normscope
ENV PATH=/home/normscope/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1

# the packages alone: a change of the code leaves this layer as it is
COPY pyproject.toml constraints.txt constraints-dev.txt packages/
RUN python3 -m venv venv \
    && python -c 'import tomllib; project = tomllib.load(open("packages/pyproject.toml", "rb"))["project"]; print(*project["dependencies"], *project["optional-dependencies"]["storage"], sep="\n")' > packages/wanted.txt \
    && pip install --no-cache-dir --no-compile -r packages/wanted.txt -c packages/constraints.txt -c packages/constraints-dev.txt

CMD ["snakemake", "--version"]
