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
ENV PATH=/opt/normscope/bin:$PATH PYTHONDONTWRITEBYTECODE=1

# a change of the code leaves this layer as it is
COPY constraints.txt constraints-dev.txt /opt/
RUN python3 -m venv /opt/normscope \
    && pip install --no-cache-dir --requirement /opt/constraints.txt \
    --constraint /opt/constraints-dev.txt snakemake-storage-plugin-fs snakemake-storage-plugin-s3

USER 1000
WORKDIR /home/normscope
CMD ["snakemake", "--version"]
