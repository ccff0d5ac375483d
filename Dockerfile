# docker build -t model-gateway .
# A release names its base by digest, and itself: --build-arg NODE_DIGEST=sha256:… (of NODE_IMAGE), VERSION, REVISION
ARG NODE_IMAGE=node:24-slim
ARG NODE_DIGEST=

# Nothing that is made here depends on the processor: it is made on the builder's own, and the last stage only copies.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE}${NODE_DIGEST:+@$NODE_DIGEST} AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

# No package needs its install script: they are not run.
FROM base AS build
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build && \
    find dist -type f \( -name '*.map' -o -name .tsbuildinfo \) -delete

# Type declarations and source maps are half of what packages weigh, and nothing reads them here.
FROM base AS packages
RUN npm ci --omit=dev --omit=optional --ignore-scripts && \
    find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.tsbuildinfo' \) -delete
# The folder takes the spool of log rows.
RUN install -d -m 0700 /folders/model-gateway

FROM ${NODE_IMAGE}${NODE_DIGEST:+@$NODE_DIGEST}
ARG NODE_IMAGE
ARG NODE_DIGEST
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="Model Gateway" \
      org.opencontainers.image.description="Self-hosted LLM gateway in the OpenAI Chat Completions shape, bring-your-own-key" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$NODE_IMAGE" \
      org.opencontainers.image.base.digest="$NODE_DIGEST"
# Fixed, so that large buffers go back to the system: glibc would keep those of one burst for the next.
ENV NODE_ENV=production \
    GW_DATA_DIR=/var/lib/model-gateway \
    MALLOC_MMAP_THRESHOLD_=131072 \
    MALLOC_TRIM_THRESHOLD_=4194304
WORKDIR /app
COPY --from=packages --chown=65532:65532 /folders/ /var/lib/
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY charts/model-gateway/files/tables.yaml ./charts/model-gateway/files/tables.yaml
# Numeric, so that a cluster can verify that it is not root.
USER 65532:65532
EXPOSE 8080 9090
# For engines without probes of their own; Kubernetes does not read it.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.GW_ADMIN_PORT || 9090}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself is the first process: it gets SIGTERM and drains. Other commands: docker run … node dist/main.js migrate
CMD ["node", "dist/main.js"]
