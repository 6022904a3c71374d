# The billing shell: migrate, worker, relay, api and the simulated gateway, one image for all.
FROM python:3.11-slim AS build
RUN python -m venv /opt/billing
WORKDIR /source
# Dependencies first: they change less often than the source.
COPY requirements.lock ./
RUN /opt/billing/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY db ./db
COPY examples ./examples
COPY python ./python
RUN /opt/billing/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/billing --create-home --shell /usr/sbin/nologin billing
COPY --from=build /opt/billing /opt/billing
ENV PATH=/opt/billing/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    BILLING_LOG_FORMAT=json
USER billing
WORKDIR /var/lib/billing
CMD ["billing", "--help"]
