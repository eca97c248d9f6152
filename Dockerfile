# The war room, run from its checkout. Build: docker build -t cloud-war-room .
FROM python:3.11-slim AS packages

WORKDIR /app
COPY requirements.lock .
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes --requirement requirements.lock

FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    WARROOM_OUT=/runs

# A number, so that an orchestrator can tell that this is not root.
RUN groupadd --gid 10001 warroom \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin warroom \
    && install --directory --owner 10001 --group 10001 --mode 0755 /runs

COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY LICENSE pyproject.toml run_warroom.py ./
COPY world world
COPY policies policies
COPY agents agents
COPY orchestrator orchestrator

USER 10001:10001
VOLUME /runs
# Ctrl-C and SIGTERM both end an episode after its step, resumable.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/venv/bin/python", "run_warroom.py"]
CMD ["run"]
