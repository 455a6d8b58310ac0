# The packages of constraints.txt, without the project, whose files Snakemake provides.
# docs/howto/slurm.md explains how to build and use this image.
FROM docker.io/library/debian:bookworm-slim

# Snakemake lists the project's files with git, and the storage plugin fs copies with rsync. Versions
# are not pinned, because Debian does not keep old ones
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git python3-venv rsync \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 normscope
ENV PATH=/opt/normscope/bin:$PATH PYTHONDONTWRITEBYTECODE=1

# code changes do not invalidate this layer
COPY constraints.txt constraints-dev.txt /opt/
RUN python3 -m venv /opt/normscope \
    && pip install --no-cache-dir --requirement /opt/constraints.txt \
    --constraint /opt/constraints-dev.txt snakemake-storage-plugin-fs snakemake-storage-plugin-s3

USER 1000
WORKDIR /home/normscope
CMD ["snakemake", "--version"]
