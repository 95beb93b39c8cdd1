# Builds the wheel with the control room, then installs it into a small image that runs as an ordinary user.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel

FROM python:3.13-slim
COPY --from=build /source/dist/*.whl /tmp/
RUN pip install --no-cache-dir "$(echo /tmp/*.whl)[fleet,mqtt]" && rm /tmp/*.whl \
    && useradd --system --create-home --uid 10001 pendula && install -d -o pendula /data
USER pendula
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/healthz', timeout=2)"]
# Loopback inside the container. To publish it, mount a settings file with TLS and tokens: docs/how-to/serve-with-tokens.md
ENTRYPOINT ["pendula", "serve", "--data", "/data", "--port", "8765"]
