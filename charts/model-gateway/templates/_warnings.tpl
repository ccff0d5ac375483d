{{/* What works, but should be known; a line each, printed after install and upgrade. */}}
{{- define "model-gateway.warnings" -}}
{{- $replicas := include "model-gateway.minReplicas" . | int }}
{{- $monitoring := .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}
{{- if eq $replicas 1 }}
  - One replica: every node drain and crash is an outage. Set {{ ternary "autoscaling.minReplicas" "replicaCount" .Values.autoscaling.enabled }} to 2 or more.
{{- else if not .Values.podDisruptionBudget.enabled }}
  - No PodDisruptionBudget: a node drain may take all replicas at once. Set podDisruptionBudget.enabled.
{{- end }}
{{- if and (not .Values.networkPolicy.enabled) (eq .Values.profile "server") }}
  - No NetworkPolicy: only the outbound policy of the process keeps users' endpoints from private addresses.
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.database.to) .Values.database.existingSecret }}
  - networkPolicy.database.to is empty: any private address may be reached on port {{ .Values.networkPolicy.database.port }}. Name the place of Postgres.
{{- end }}
{{- $connections := include "model-gateway.neededConnections" . | int }}
{{- if and .Values.database.existingSecret (kindIs "invalid" .Values.database.maxConnections) (gt $connections 97) }}
  - {{ include "model-gateway.maxPods" . }} pods may open {{ $connections }} connections, and Postgres as it comes grants 97. Set database.maxConnections to what yours grants: pools are sized by it.
{{- end }}
{{- if eq .Values.outbound.policy "allow-private" }}
  - outbound.policy is allow-private: users may register endpoints inside your network. Prefer public-only with selfHosted.allow.
{{- end }}
{{- if and .Values.ingress.enabled (eq .Values.ingress.preset "none") }}
  - ingress.preset is none: most controllers buffer, or cut an answer after 60 s. Streams need {{ include "model-gateway.proxySeconds" . }} s.
{{- end }}
{{- $readTimeout := get .Values.ingress.annotations "nginx.ingress.kubernetes.io/proxy-read-timeout" | int }}
{{- if and .Values.ingress.enabled $readTimeout (lt $readTimeout (include "model-gateway.requestSeconds" . | int)) }}
  - ingress.annotations sets proxy-read-timeout to {{ $readTimeout }} s: an answer that pauses for longer is cut. Set it to {{ include "model-gateway.proxySeconds" . }} or leave it to the preset.
{{- end }}
{{- if and .Values.ingress.enabled (eq .Values.ingress.preset "nginx") }}
  - ingress-nginx cuts answers that last longer than worker-shutdown-timeout of its own ConfigMap (240s) when it reloads: set that to {{ include "model-gateway.proxySeconds" . }}s.
{{- end }}
{{- if and .Values.ingress.enabled (eq .Values.ingress.preset "haproxy") }}
  - HAProxy notices a client that left only when it next writes: put option abortonclose into the defaults of its own configuration.
{{- end }}
{{- if and .Values.ingress.enabled (eq .Values.ingress.preset "alb") }}
  - The load balancer's idle timeout is set to {{ include "model-gateway.proxySeconds" . }} s by annotation; check limits of anything in front of it.
{{- end }}
{{- if and .Values.autoscaling.enabled .Values.autoscaling.inflightStreams (not (.Capabilities.APIVersions.Has "custom.metrics.k8s.io/v1beta2")) (not (.Capabilities.APIVersions.Has "custom.metrics.k8s.io/v1beta1")) }}
  - autoscaling.inflightStreams needs the custom metrics API, which this cluster does not serve: until it does, nothing is scaled down.
{{- end }}
{{- if and .Values.autoscaling.enabled .Values.autoscaling.cpuUtilization (not (.Capabilities.APIVersions.Has "metrics.k8s.io/v1beta1")) }}
  - autoscaling.cpuUtilization needs the metrics API (metrics-server), which this cluster does not serve.
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not $monitoring) }}
  - metrics.serviceMonitor was left out: the cluster does not know monitoring.coreos.com/v1.
{{- end }}
{{- if and .Values.metrics.prometheusRule.enabled (not $monitoring) }}
  - metrics.prometheusRule was left out: the cluster does not know monitoring.coreos.com/v1.
{{- end }}
{{- if and .Values.telemetry.propagateTo (not .Values.telemetry.otlpEndpoint) (not .Values.otelCollector.enabled) }}
  - telemetry.propagateTo has no effect without traces: set telemetry.otlpEndpoint or otelCollector.enabled.
{{- end }}
{{- if and (or .Values.egressProxy.url .Values.egressProxy.existingSecret) (ne .Values.egressProxy.region "india") }}
  - egressProxy.region is {{ .Values.egressProxy.region }}: requests that must stay in India are refused unless egressProxy.noProxy names where they go. Set it to india if the proxy stands there.
{{- end }}
{{- if .Values.vendors.sarvam }}
  - vendors.sarvam counts as in India, as Sarvam does: requests that must stay there go to it. It has to stand there, TLS that ends at it included.
{{- end }}
{{- if not (dig "limits" "memory" "" .Values.resources) }}
  - resources.limits.memory is not set: the heap grows to what Node makes of the node's memory. Set it; the heap gets three fifths.
{{- end }}
{{- if dig "limits" "cpu" "" .Values.resources }}
  - resources.limits.cpu throttles the gateway, which delays every stream of a pod: leave it out.
{{- end }}
{{- if and .Values.metrics.dashboards.enabled (not .Values.metrics.dashboards.labels) }}
  - metrics.dashboards.labels is empty: Grafana's sidecar finds dashboards by a label.
{{- end }}
{{- if and .Values.spool.existingClaim (gt (include "model-gateway.mostReplicas" . | int) 1) }}
  - spool.existingClaim with more than one replica: the claim must be ReadWriteMany, or pods on other nodes never start.
{{- else if and .Values.spool.existingClaim (gt (include "model-gateway.maxPods" . | int) 1) }}
  - spool.existingClaim with a rollout that starts a second pod: unless the claim is ReadWriteMany that one never starts on another node. Set strategy.maxSurge to 0 and strategy.maxUnavailable to 1.
{{- end }}
{{- if and (not .Values.redis.existingSecret) (gt $replicas 1) }}
  - No Redis: each replica has a cache of its own, so equal requests hit less often.
{{- end }}
{{- $isProxied := and (eq .Values.profile "server") (include "model-gateway.isProxied" .) }}
{{- if and $isProxied (eq .Values.registration.mode "open") (eq (include "model-gateway.registrationsPerIp" .) "0") }}
  - Anybody who reaches the API from outside may register, and one client may use up registration.perMinute for all: set registration.mode to token, or trustedProxyHops and registration.perMinutePerIp.
{{- end }}
{{- if and $isProxied (eq (int .Values.trustedProxyHops) 0) }}
{{- if or .Values.ingress.enabled .Values.httpRoute.enabled }}
  - trustedProxyHops is 0 behind a proxy: every client has the proxy's address in logs, and registration.perMinutePerIp is not applied. Set it to the number of your proxies.
{{- else }}
  - trustedProxyHops is 0 and service.type is {{ .Values.service.type }}: clients may all have the address of a node or a balancer in logs, and registration.perMinutePerIp is not applied. Set it where every request passes proxies that write X-Forwarded-For.
{{- end }}
{{- end }}
{{- if and .Values.tables.existingConfigMap (kindIs "invalid" .Values.drain.requestSeconds) }}
  - tables.existingConfigMap is not read by the chart: if its timeouts.request_seconds is above 300, set drain.requestSeconds to it.
{{- end }}
{{- end -}}
