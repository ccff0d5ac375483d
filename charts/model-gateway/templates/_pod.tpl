{{/* The gateway's container and what its pod needs. */}}

{{/* Each network with each of its ports: what the NetworkPolicy opens, and nothing beside it. */}}
{{- define "model-gateway.allowedNetworks" -}}
{{- $networks := list -}}
{{- range .Values.selfHosted.allow -}}
{{- $cidr := ternary (printf "[%s]" .cidr) .cidr (contains ":" .cidr) -}}
{{- range .ports -}}
{{- $networks = append $networks (printf "%s:%d" $cidr (int .)) -}}
{{- end -}}
{{- end -}}
{{- join "," ($networks | uniq) -}}
{{- end -}}

{{/* Whether something stands between clients and pods: a proxy, or nodes and balancers. */}}
{{- define "model-gateway.isProxied" -}}
{{- if or .Values.ingress.enabled .Values.httpRoute.enabled (ne .Values.service.type "ClusterIP") }}true{{ end -}}
{{- end -}}

{{/* Behind a proxy that is not believed all clients have one address: a limit for each would be one for all. */}}
{{- define "model-gateway.registrationsPerIp" -}}
{{- if and (include "model-gateway.isProxied" .) (eq (int .Values.trustedProxyHops) 0) -}}0{{- else -}}{{ .Values.registration.perMinutePerIp | int }}{{- end -}}
{{- end -}}

{{/* Settings of every process of the image: stores and keys, all read from files. */}}
{{- define "model-gateway.storeEnv" -}}
{{- if .Values.database.existingSecret }}
- { name: DATABASE_URL_FILE, value: /run/secrets/model-gateway/database-url }
{{- if .Values.database.directUrlKey }}
- { name: DATABASE_DIRECT_URL_FILE, value: /run/secrets/model-gateway/database-direct-url }
{{- end }}
{{- end }}
{{- if .Values.sealing.existingSecret }}
- { name: GW_SEALING_KEYS_FILE, value: /run/secrets/model-gateway/sealing-keys }
{{- end }}
{{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/model-gateway/ca/{{ .Values.caBundle.key }} }
{{- end }}
{{- end -}}

{{- define "model-gateway.proxyEnv" }}
{{- range list "HTTPS_PROXY" "HTTP_PROXY" }}
{{- if $.Values.egressProxy.existingSecret }}
- { name: {{ . }}_FILE, value: /run/secrets/model-gateway/egress-proxy }
{{- else if $.Values.egressProxy.url }}
- { name: {{ . }}, value: {{ $.Values.egressProxy.url | quote }} }
{{- end }}
{{- end }}
{{- if or .Values.egressProxy.existingSecret .Values.egressProxy.url }}
- { name: NO_PROXY, value: {{ join "," .Values.egressProxy.noProxy | quote }} }
- { name: GW_EGRESS_PROXY_REGION, value: {{ .Values.egressProxy.region }} }
{{- end }}
{{- end -}}

{{- define "model-gateway.serveEnv" -}}
{{- $sidecar := eq .Values.profile "sidecar" }}
{{- include "model-gateway.storeEnv" . }}
{{- if .Values.redis.existingSecret }}
- { name: REDIS_URL_FILE, value: /run/secrets/model-gateway/redis-url }
{{- end }}
{{- if and $sidecar .Values.sidecar.existingSecret }}
- { name: GW_SERVICE_KEY_FILE, value: /run/secrets/model-gateway/service-key }
- { name: GW_PROVIDER_KEYS_FILE, value: /run/secrets/model-gateway/provider-keys.yaml }
{{- end }}
- { name: GW_PROFILE, value: {{ .Values.profile }} }
- { name: PORT, value: "8080" }
- { name: GW_HOST, value: {{ ternary "127.0.0.1" .Values.listenAddress $sidecar | quote }} }
- { name: GW_ADMIN_HOST, value: {{ .Values.listenAddress | quote }} }
- { name: GW_ADMIN_PORT, value: "9090" }
- { name: GW_MIGRATE, value: {{ ternary "boot" "off" (eq (toString .Values.migrations.mode) "boot") | quote }} }
- { name: GW_DATABASE_POOL, value: {{ include "model-gateway.poolSize" . | quote }} }
{{- if not (kindIs "invalid" .Values.cache.memoryBytes) }}
- { name: GW_CACHE_MEMORY_BYTES, value: {{ .Values.cache.memoryBytes | int64 | quote }} }
{{- end }}
{{- if eq .Values.tables.source "watch" }}
- { name: GW_TABLES_CONFIGMAP, value: {{ printf "%s/%s/%s" .Release.Namespace (include "model-gateway.tablesConfigMap" .) .Values.tables.key }} }
{{- else }}
- { name: GW_TABLES_FILE, value: /etc/model-gateway/tables/{{ .Values.tables.key }} }
{{- end }}
- { name: GW_OUTBOUND_POLICY, value: {{ .Values.outbound.policy }} }
{{- with include "model-gateway.allowedNetworks" . }}
- { name: GW_OUTBOUND_ALLOWED_CIDRS, value: {{ . | quote }} }
{{- end }}
{{- range $vendor, $url := .Values.vendors }}
{{- with $url }}
- { name: GW_{{ upper $vendor }}_BASE_URL, value: {{ . | quote }} }
{{- end }}
{{- end }}
{{- include "model-gateway.proxyEnv" . }}
- { name: GW_DATA_DIR, value: /var/lib/model-gateway }
- { name: GW_SPOOL_DIR, value: /var/lib/model-gateway/spool }
- { name: GW_SPOOL_BYTES, value: {{ .Values.spool.maxBytes | int64 | quote }} }
- { name: GW_SPOOL_FULL, value: {{ .Values.spool.whenFull }} }
- { name: GW_LOG_LEVEL, value: {{ .Values.logs.level }} }
- { name: GW_LOG_RETENTION_DAYS, value: {{ .Values.logs.retentionDays | int | quote }} }
{{- with .Values.logs.storageRegion }}
- { name: GW_STORAGE_REGION, value: {{ . | quote }} }
{{- end }}
- { name: GW_DRAIN_DELAY_SECONDS, value: {{ include "model-gateway.delaySeconds" . | quote }} }
- { name: GW_DRAIN_SECONDS, value: {{ include "model-gateway.requestSeconds" . | quote }} }
- { name: GW_BODY_LIMIT_BYTES, value: {{ .Values.bodyLimitBytes | int64 | quote }} }
- { name: GW_TRUSTED_PROXY_HOPS, value: {{ .Values.trustedProxyHops | int | quote }} }
- { name: GW_REGISTRATION, value: {{ .Values.registration.mode }} }
{{- if eq .Values.registration.mode "token" }}
- { name: GW_REGISTRATION_TOKEN_FILE, value: /run/secrets/model-gateway/registration-token }
{{- end }}
{{- if .Values.adminApi.existingSecret }}
- { name: GW_ADMIN_TOKEN_FILE, value: /run/secrets/model-gateway/admin-token }
{{- end }}
- { name: GW_REGISTRATIONS_PER_MINUTE, value: {{ .Values.registration.perMinute | int | quote }} }
- { name: GW_REGISTRATIONS_PER_MINUTE_PER_IP, value: {{ include "model-gateway.registrationsPerIp" . | quote }} }
- { name: GW_MAX_EVENT_LOOP_DELAY_MS, value: {{ .Values.overload.maxEventLoopDelayMs | int | quote }} }
{{- if not (kindIs "invalid" .Values.overload.maxHeapBytes) }}
- { name: GW_MAX_HEAP_BYTES, value: {{ .Values.overload.maxHeapBytes | int64 | quote }} }
{{- end }}
{{- if not (kindIs "invalid" .Values.overload.maxMemoryBytes) }}
- { name: GW_MAX_MEMORY_BYTES, value: {{ .Values.overload.maxMemoryBytes | int64 | quote }} }
{{- end }}
{{- include "model-gateway.telemetryEnv" . }}
{{- with include "model-gateway.heapMiB" . }}
- { name: NODE_OPTIONS, value: {{ printf "--max-old-space-size=%s --max-semi-space-size=16" . | quote }} }
{{- end }}
{{- end -}}

{{- define "model-gateway.telemetryEnv" }}
- { name: GW_OTEL_AUTO, value: {{ .Values.telemetry.autoInstrumentation | quote }} }
{{- with .Values.telemetry.propagateTo }}
- { name: GW_TRACE_PROPAGATE_TO, value: {{ join "," . | quote }} }
{{- end }}
{{- $endpoint := ternary "http://127.0.0.1:4318" .Values.telemetry.otlpEndpoint .Values.otelCollector.enabled }}
{{- with $endpoint }}
- { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }} }
- { name: OTEL_SERVICE_NAME, value: model-gateway }
- { name: OTEL_TRACES_SAMPLER, value: parentbased_traceidratio }
- { name: OTEL_TRACES_SAMPLER_ARG, value: {{ $.Values.telemetry.samplingRatio | quote }} }
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: POD_NAMESPACE
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- { name: OTEL_RESOURCE_ATTRIBUTES, value: "k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME)" }
{{- end }}
{{- end -}}

{{/* The chart's variables, less those that extraEnv sets: a name may occur only once. */}}
{{- define "model-gateway.env" -}}
{{- $own := list -}}
{{- range .Values.extraEnv }}{{ $own = append $own .name }}{{ end -}}
{{- $env := list -}}
{{- range include "model-gateway.serveEnv" . | fromYamlArray -}}
{{- if not (has .name $own) }}{{ $env = append $env . }}{{ end -}}
{{- end -}}
{{- toYaml (concat $env .Values.extraEnv) -}}
{{- end -}}

{{- define "model-gateway.container" -}}
name: model-gateway
image: {{ include "model-gateway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.profile "sidecar" }}
restartPolicy: Always
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
env:
  {{- include "model-gateway.env" . | nindent 2 }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if eq .Values.profile "server" }}
  - { name: http, containerPort: 8080, protocol: TCP }
  {{- end }}
  - { name: admin, containerPort: 9090, protocol: TCP }
# Starting waits for the process only: a Postgres that is away must not restart every pod. An application beside the
# gateway waits until it can be served.
startupProbe:
  httpGet: { path: {{ ternary "/readyz" "/healthz" (eq .Values.profile "sidecar") }}, port: admin }
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 120
readinessProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /healthz, port: admin }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
lifecycle:
  preStop:
    sleep: { seconds: {{ .Values.drain.preStopSeconds | int }} }
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  - { name: spool, mountPath: /var/lib/model-gateway }
  {{- if eq .Values.tables.source "mounted" }}
  # A directory, so that an edit of the ConfigMap arrives in the running pod.
  - { name: tables, mountPath: /etc/model-gateway/tables, readOnly: true }
  {{- end }}
  {{- if include "model-gateway.secretSources" . | trim }}
  - { name: secrets, mountPath: /run/secrets/model-gateway, readOnly: true }
  {{- end }}
  {{- with include "model-gateway.certificateMounts" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if .Values.redis.tlsSecret }}
  - { name: redis-tls, mountPath: /etc/model-gateway/redis-tls, readOnly: true }
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Certificates of every process of the image: directories, so that renewed ones arrive in the running pod. */}}
{{- define "model-gateway.certificateMounts" -}}
{{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
- { name: ca, mountPath: /etc/model-gateway/ca, readOnly: true }
{{- end }}
{{- if .Values.database.tlsSecret }}
- { name: database-tls, mountPath: /etc/model-gateway/database-tls, readOnly: true }
{{- end }}
{{- end -}}

{{/* The entry of caBundle is named: without it no pod starts, rather than one that trusts the public authorities only. */}}
{{- define "model-gateway.certificateVolumes" -}}
{{- $ca := printf "[{ key: %s, path: %s }]" (quote .Values.caBundle.key) (quote .Values.caBundle.key) }}
{{- if .Values.caBundle.secret }}
- name: ca
  secret: { secretName: {{ .Values.caBundle.secret }}, items: {{ $ca }}, defaultMode: 288 } # 0440
{{- else if .Values.caBundle.configMap }}
- name: ca
  configMap: { name: {{ .Values.caBundle.configMap }}, items: {{ $ca }} }
{{- end }}
{{- if .Values.database.tlsSecret }}
- name: database-tls
  secret: { secretName: {{ .Values.database.tlsSecret }}, defaultMode: 288 } # 0440
{{- end }}
{{- end -}}

{{/* Secrets of every process of the image. */}}
{{- define "model-gateway.storeSecretSources" -}}
{{- with .Values.database }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .urlKey }}, path: database-url }
      {{- if .directUrlKey }}
      - { key: {{ .directUrlKey }}, path: database-direct-url }
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.sealing }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .key }}, path: sealing-keys }
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.secretSources" -}}
{{- include "model-gateway.storeSecretSources" . }}
{{- with .Values.redis }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .urlKey }}, path: redis-url }
{{- end }}
{{- end }}
{{- with .Values.egressProxy }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .urlKey }}, path: egress-proxy }
{{- end }}
{{- end }}
{{- with .Values.registration }}
{{- if eq .mode "token" }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .tokenKey }}, path: registration-token }
{{- end }}
{{- end }}
{{- with .Values.adminApi }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .tokenKey }}, path: admin-token }
{{- end }}
{{- end }}
{{- with .Values.sidecar }}
{{- if and (eq $.Values.profile "sidecar") .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - { key: {{ .serviceKeyKey }}, path: service-key }
      - { key: {{ .providerKeysKey }}, path: provider-keys.yaml }
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.volumes" -}}
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
- name: spool
  {{- if .Values.spool.existingClaim }}
  persistentVolumeClaim: { claimName: {{ .Values.spool.existingClaim }} }
  {{- else }}
  # Above what the gateway lets itself use, since beyond it the kubelet evicts the pod.
  emptyDir: { sizeLimit: {{ add (div (int64 .Values.spool.maxBytes) 1048576) 64 }}Mi }
  {{- end }}
{{- if eq .Values.tables.source "mounted" }}
- name: tables
  configMap: { name: {{ include "model-gateway.tablesConfigMap" . }} }
{{- end }}
{{- with include "model-gateway.secretSources" . | trim }}
- name: secrets
  projected:
    defaultMode: 288 # 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- with include "model-gateway.certificateVolumes" . | trim }}
{{ . }}
{{- end }}
{{- if .Values.redis.tlsSecret }}
- name: redis-tls
  secret: { secretName: {{ .Values.redis.tlsSecret }}, defaultMode: 288 } # 0440
{{- end }}
{{- if .Values.otelCollector.enabled }}
- name: otel-collector
  configMap: { name: {{ include "model-gateway.fullname" . }}-otel-collector }
{{- end }}
{{- if eq .Values.profile "sidecar" }}
{{- with .Values.sidecar.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Native sidecars that stand beside a Job too, as JSON: Postgres may be behind one. Not those that mount what is the
gateway's own, such as its spool.
*/}}
{{- define "model-gateway.jobSidecars" -}}
{{- $volumes := list -}}
{{- range .Values.extraVolumes -}}{{- $volumes = append $volumes .name -}}{{- end -}}
{{- $sidecars := list -}}
{{- range .Values.nativeSidecars -}}
{{- $fits := true -}}
{{- range .volumeMounts -}}{{- if not (has .name $volumes) -}}{{- $fits = false -}}{{- end -}}{{- end -}}
{{- if $fits -}}{{- $sidecars = append $sidecars (merge (dict "restartPolicy" "Always") .) -}}{{- end -}}
{{- end -}}
{{- $sidecars | toJson -}}
{{- end -}}

{{/* Native sidecars first, in the order in which they start; then containers that run to their end. */}}
{{- define "model-gateway.initContainers" -}}
{{- if .Values.otelCollector.enabled }}
- {{ include "model-gateway.otelCollector" . | nindent 2 | trim }}
{{- end }}
{{- range .Values.nativeSidecars }}
- {{ merge (dict "restartPolicy" "Always") . | toYaml | nindent 2 | trim }}
{{- end }}
{{- with .Values.initContainers }}
{{ toYaml . }}
{{- end }}
{{- if eq .Values.profile "sidecar" }}
- {{ include "model-gateway.container" . | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{- define "model-gateway.otelCollectorConfig" -}}
{{- $host := ternary (printf "[%s]" .Values.listenAddress) .Values.listenAddress (contains ":" .Values.listenAddress) -}}
extensions:
  health_check: { endpoint: '{{ $host }}:13133' }
receivers:
  otlp:
    protocols:
      http: { endpoint: '127.0.0.1:4318' }
      grpc: { endpoint: '127.0.0.1:4317' }
processors:
  memory_limiter: { check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 20 }
  batch: { timeout: 1s }
exporters:
  otlphttp:
    endpoint: {{ .Values.otelCollector.exportEndpoint | quote }}
    {{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
    tls: { ca_file: '/etc/model-gateway/ca/{{ .Values.caBundle.key }}', include_system_ca_certs_pool: true }
    {{- end }}
service:
  extensions: [health_check]
  pipelines:
    traces: { receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlphttp] }
{{- end -}}

{{- define "model-gateway.otelCollector" -}}
name: otel-collector
image: {{ .Values.otelCollector.image }}
restartPolicy: Always
args: ['--config=/etc/otel-collector/config.yaml']
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
ports:
  - { name: otel-health, containerPort: 13133, protocol: TCP }
startupProbe:
  httpGet: { path: /, port: otel-health }
  periodSeconds: 1
  failureThreshold: 60
resources:
  {{- toYaml .Values.otelCollector.resources | nindent 2 }}
volumeMounts:
  - { name: otel-collector, mountPath: /etc/otel-collector, readOnly: true }
  {{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
  - { name: ca, mountPath: /etc/model-gateway/ca, readOnly: true }
  {{- end }}
{{- end -}}

{{/* What pods of Jobs and tests share with the gateway's. */}}
{{- define "model-gateway.jobPod" -}}
{{- if and .Values.serviceAccount.name (not .Values.serviceAccount.create) }}
serviceAccountName: {{ .Values.serviceAccount.name }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
restartPolicy: Never
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
