{{/* Refusals: values that would install, and then fail or harm. Each names the value and the mend. */}}

{{- define "model-gateway.validate" -}}
{{- $refusals := concat
  (include "model-gateway.refuseSecrets" . | fromYamlArray)
  (include "model-gateway.refuseDrain" . | fromYamlArray)
  (include "model-gateway.refuseScaling" . | fromYamlArray)
  (include "model-gateway.refuseDisruption" . | fromYamlArray)
  (include "model-gateway.refuseTables" . | fromYamlArray)
  (include "model-gateway.refuseOwnKeys" . | fromYamlArray)
  (include "model-gateway.refuseEdges" . | fromYamlArray)
  (include "model-gateway.refuseNetwork" . | fromYamlArray)
  (include "model-gateway.refuseSidecar" . | fromYamlArray) -}}
{{- if $refusals -}}
{{- fail (printf "\n\nmodel-gateway: these values cannot work:\n  - %s\n" (join "\n  - " $refusals)) -}}
{{- end -}}
{{- end -}}

{{- define "model-gateway.refuseSecrets" -}}
{{- if eq .Values.profile "server" }}
{{- if not .Values.database.existingSecret }}
- 'database.existingSecret is empty: name a Secret with the address of Postgres in its entry "{{ .Values.database.urlKey }}" (kubectl create secret generic gateway-database --from-literal={{ .Values.database.urlKey }}=postgres://…).'
{{- end }}
{{- end }}
{{- if and (or (eq .Values.profile "server") .Values.database.existingSecret) (not .Values.sealing.existingSecret) }}
- 'sealing.existingSecret is empty: name a Secret with the sealing keys in its entry "{{ .Values.sealing.key }}" (kubectl create secret generic gateway-sealing --from-literal={{ .Values.sealing.key }}="v1:$(openssl rand -base64 32)"). Keep a copy: without it stored provider keys cannot be opened.'
{{- end }}
{{- if and (eq .Values.registration.mode "token") (not .Values.registration.existingSecret) }}
- 'registration.mode is "token" but registration.existingSecret is empty: name the Secret that holds the token.'
{{- end }}
{{- if and .Values.sealing.resealOnUpgrade (not .Values.database.existingSecret) }}
- 'sealing.resealOnUpgrade needs database.existingSecret: without a database there are no stored keys.'
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseDrain" -}}
{{- $needed := include "model-gateway.neededGraceSeconds" . | int }}
{{- if lt (include "model-gateway.graceSeconds" . | int) $needed }}
- 'drain.terminationGracePeriodSeconds is {{ .Values.drain.terminationGracePeriodSeconds }}, but preStopSeconds + delaySeconds + requestSeconds + flushSeconds is {{ $needed }}: streams would be cut. Set it to {{ $needed }} or more, or to null.'
{{- end }}
{{- $longest := include "model-gateway.tablesRequestSeconds" . | int }}
{{- if lt (include "model-gateway.requestSeconds" . | int) $longest }}
- 'drain.requestSeconds is {{ .Values.drain.requestSeconds }}, but the tables allow requests of {{ $longest }} s (timeouts.request_seconds): set it to {{ $longest }} or to null, or lower tables.document.timeouts.request_seconds.'
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseScaling" -}}
{{- if .Values.autoscaling.enabled }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
- 'autoscaling.minReplicas ({{ .Values.autoscaling.minReplicas }}) is above autoscaling.maxReplicas ({{ .Values.autoscaling.maxReplicas }}): raise the latter.'
{{- end }}
{{- if not (or .Values.autoscaling.cpuUtilization .Values.autoscaling.inflightStreams .Values.autoscaling.metrics) }}
- 'autoscaling.enabled without a metric: set autoscaling.cpuUtilization, inflightStreams or metrics.'
{{- end }}
{{- if and .Values.autoscaling.cpuUtilization (not (dig "requests" "cpu" "" .Values.resources)) }}
- 'autoscaling.cpuUtilization is a share of resources.requests.cpu, which is not set: set it, or cpuUtilization to null.'
{{- end }}
{{- end }}
{{- $needed := include "model-gateway.neededConnections" . | int }}
{{- if and .Values.database.existingSecret (not (kindIs "invalid" .Values.database.maxConnections)) (gt $needed (int .Values.database.maxConnections)) }}
- 'database.maxConnections is {{ .Values.database.maxConnections }}, but {{ include "model-gateway.maxPods" . }} pods (rollouts included) may open {{ $needed }}: raise it in Postgres and here, lower {{ ternary "autoscaling.maxReplicas" "replicaCount" .Values.autoscaling.enabled }} or database.poolSize, or put a pooler before Postgres (database.directUrlKey).'
{{- end }}
{{- $memory := dig "limits" "memory" "" .Values.resources }}
{{- $heap := include "model-gateway.heapMiB" . }}
{{- if and $memory (not $heap) }}
- 'resources.limits.memory is {{ $memory }}, from which no heap size can be computed: write it as 512Mi, 1.5Gi, 1500M or in bytes.'
{{- else if and $memory (lt (int $heap) 16) }}
- 'resources.limits.memory is {{ $memory }}, in which no process fits: give it a unit, for instance 512Mi.'
{{- else if and $memory (gt (include "model-gateway.bytes" (dig "requests" "memory" 0 .Values.resources | default 0) | int64) (include "model-gateway.bytes" $memory | int64)) }}
- 'resources.requests.memory is {{ .Values.resources.requests.memory }}, but resources.limits.memory is {{ $memory }}: the Kubernetes API takes no pod that asks for more than its limit. Lower the former or raise the latter.'
{{- else if and $memory (not .Values.redis.existingSecret) (ge (int64 (default 0 .Values.cache.memoryBytes)) (include "model-gateway.bytes" $memory | int64)) }}
- 'cache.memoryBytes is {{ int64 .Values.cache.memoryBytes }}, but resources.limits.memory is {{ $memory }}, of which the heap alone gets three fifths: the pod would be killed. Lower the former, raise the latter, or name a Redis.'
{{- end }}
{{- end -}}

{{/* What would keep a pod from ever being replaced. */}}
{{- define "model-gateway.refuseDisruption" -}}
{{- $replicas := include "model-gateway.minReplicas" . | int }}
{{- with .Values.strategy }}
{{- if and (has (toString .maxSurge) (list "0" "0%")) (has (toString .maxUnavailable) (list "0" "0%")) }}
- 'strategy.maxSurge and strategy.maxUnavailable are both 0: no pod could ever be replaced. Set one of them to 1 or more.'
{{- end }}
{{- end }}
{{- with .Values.podDisruptionBudget }}
{{- if .enabled }}
{{- $hasMin := not (kindIs "invalid" .minAvailable) }}
{{- $hasMax := not (kindIs "invalid" .maxUnavailable) }}
{{- if eq $hasMin $hasMax }}
- 'podDisruptionBudget needs exactly one of maxUnavailable and minAvailable: set the other to null.'
{{- end }}
{{- if and $hasMax (has (toString .maxUnavailable) (list "0" "0%")) }}
- 'podDisruptionBudget.maxUnavailable is {{ .maxUnavailable }}: no pod could ever be evicted and node drains would hang. Set it to 1 or more.'
{{- end }}
{{- if and $hasMin (gt $replicas 0) (gt (include "model-gateway.mostReplicas" $ | int) 1) }}
{{- $kept := include "model-gateway.podCount" (dict "count" .minAvailable "of" $replicas) | int }}
{{- if ge $kept $replicas }}
- 'podDisruptionBudget.minAvailable is {{ .minAvailable }}, which is all of {{ $replicas }} replicas at the least (a share is rounded up): node drains would hang. {{ if gt $replicas 1 }}Let it keep fewer than {{ $replicas }}, or set{{ else }}Set{{ end }} it to null and maxUnavailable to 1.'
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseTables" -}}
{{- if and .Values.tables.existingConfigMap .Values.tables.document }}
- 'tables.document is not used with tables.existingConfigMap: edit that ConfigMap, and leave tables.document empty.'
{{- end }}
{{- if and (eq .Values.tables.source "watch") .Values.networkPolicy.enabled (not .Values.networkPolicy.kubeApi.cidrs) }}
- 'tables.source is "watch", but networkPolicy.kubeApi.cidrs is empty, so the Kubernetes API cannot be reached: name its addresses (kubectl get endpointslices -n default kubernetes).'
{{- end }}
{{- if and (eq .Values.tables.source "watch") (eq (include "model-gateway.serviceAccountName" .) "default") }}
- 'tables.source is "watch", which would give every pod of the namespace the right to read the tables: set serviceAccount.create to true or serviceAccount.name.'
{{- end }}
{{- range $tier, $candidates := .Values.tables.document.tiers }}
{{- $providers := list }}
{{- range $candidates }}{{ $providers = append $providers .provider }}{{ end }}
{{- if not (has "sarvam" $providers) }}
- 'tables.document.tiers.{{ $tier }} needs a candidate with India residency (sarvam), or X-Gateway-Residency: india can never be served.'
{{- end }}
{{- end }}
{{- if and .Values.tables.document (not .Values.tables.existingConfigMap) }}
{{- $document := include "model-gateway.tablesDocument" . | fromYaml }}
{{- $first := dig "cooldown" "first_seconds" 5 $document }}
{{- $longest := dig "cooldown" "longest_seconds" 15 $document }}
{{- if gt (float64 $first) (float64 $longest) }}
- 'tables.document.cooldown.first_seconds is {{ $first }}, which is longer than longest_seconds ({{ $longest }}): raise the latter too.'
{{- end }}
{{- $lists := dict "prices" (default list $document.prices) "models" (default list $document.models) }}
{{- range $tier, $candidates := $document.tiers }}{{ $_ := set $lists (printf "tiers.%s" $tier) $candidates }}{{ end }}
{{- range $list, $rows := $lists }}
{{- $seen := list }}
{{- range $rows }}
{{- $name := printf "%s:%s" .provider (.model | default .match | default "") }}
{{- if has $name $seen }}
- 'tables.document.{{ $list }} has {{ $name }} twice: leave one of them out.'
{{- end }}
{{- $seen = append $seen $name }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A key twice in a map is what the Kubernetes API refuses, or what moves pods out of reach of their Services. */}}
{{- define "model-gateway.refuseOwnKeys" -}}
{{- $ofPods := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" }}
{{- $ofAll := concat $ofPods (list "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart") }}
{{- $annotations := list "kubectl.kubernetes.io/default-container" "checksum/otel-collector" }}
{{- range $value, $own := dict "podLabels" $ofPods "commonLabels" $ofAll "podAnnotations" $annotations }}
{{- range $key, $_ := get $.Values $value }}
{{- if has $key $own }}
- '{{ $value }} has {{ $key }}, which the chart sets itself: leave it out{{ if eq $key "app.kubernetes.io/name" }}, or set nameOverride{{ end }}.'
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseEdges" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
- 'ingress.enabled without ingress.hosts: name at least one host.'
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
- 'httpRoute.enabled without httpRoute.parentRefs: name the Gateway that serves it.'
{{- end }}
{{- if and .Values.otelCollector.enabled (not .Values.otelCollector.exportEndpoint) }}
- 'otelCollector.enabled without otelCollector.exportEndpoint: name the OTLP endpoint that the spans go to.'
{{- end }}
{{- if and .Values.egressProxy.url .Values.egressProxy.existingSecret }}
- 'egressProxy.url and egressProxy.existingSecret are both set: keep one.'
{{- end }}
{{- if and .Values.caBundle.configMap .Values.caBundle.secret }}
- 'caBundle.configMap and caBundle.secret are both set: keep one.'
{{- end }}
{{- range .Values.nativeSidecars }}
{{- if has .name (list "model-gateway" "migrate" "reseal" (ternary "otel-collector" "" $.Values.otelCollector.enabled)) }}
- 'nativeSidecars has a container named {{ .name }}, which the chart has too: name it otherwise{{ if eq .name "otel-collector" }}, or set otelCollector.enabled to false{{ end }}.'
{{- end }}
{{- end }}
{{- if and (eq .Values.service.ipFamilyPolicy "SingleStack") (gt (len (default list .Values.service.ipFamilies)) 1) }}
- 'service.ipFamilyPolicy is SingleStack, but service.ipFamilies names both families: keep one, or set the policy to PreferDualStack.'
{{- end }}
{{- if and .Values.otelCollector.enabled .Values.telemetry.otlpEndpoint }}
- 'telemetry.otlpEndpoint and otelCollector.enabled exclude each other: with the collector the gateway sends to it; leave telemetry.otlpEndpoint empty.'
{{- end }}
{{- end -}}

{{/* What the NetworkPolicy would not let out, unless rules of the user's own do, and what the API server would not take in one. */}}
{{- define "model-gateway.refuseNetwork" -}}
{{- if and .Values.networkPolicy.enabled (eq .Values.profile "server") }}
{{- $cidrs := dict "selfHosted.allow" list "networkPolicy.kubeApi.cidrs" (ternary .Values.networkPolicy.kubeApi.cidrs list (eq .Values.tables.source "watch")) }}
{{- range .Values.selfHosted.allow }}
{{- $_ := set $cidrs "selfHosted.allow" (append (get $cidrs "selfHosted.allow") .cidr) }}
{{- end }}
{{- range $value, $all := $cidrs }}
{{- range $all }}
{{- with include "model-gateway.networkAround" . }}
- '{{ $value }} names no network, but an address inside of one, which the Kubernetes API refuses: write {{ . }}.'
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.egressProxy.url }}
{{- $port := include "model-gateway.urlPort" . }}
{{- if ne $port (toString $.Values.networkPolicy.proxy.port) }}
- 'egressProxy.url has port {{ $port }}, but networkPolicy.proxy.port is {{ $.Values.networkPolicy.proxy.port }}: set the latter to {{ $port }}, or the proxy cannot be reached.'
{{- end }}
{{- end }}
{{- if not .Values.networkPolicy.extraEgress }}
{{- include "model-gateway.refuseVendors" . }}
{{- include "model-gateway.refuseOtlp" . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseOtlp" -}}
{{- with include "model-gateway.otlpTarget" . }}
{{- $port := include "model-gateway.urlPort" . | int }}
{{- $value := ternary "otelCollector.exportEndpoint" "telemetry.otlpEndpoint" $.Values.otelCollector.enabled }}
{{- $ports := list }}
{{- range $.Values.networkPolicy.otlp.ports }}{{ $ports = append $ports (int .) }}{{ end }}
{{- if not (or (has $port $ports) (include "model-gateway.publicOtlpPort" $) (eq (include "model-gateway.urlPlace" .) "loopback")) }}
- '{{ $value }} has port {{ $port }}, but networkPolicy.otlp.ports is {{ join ", " $ports }}: add {{ $port }}, or no span leaves.'
{{- end }}
{{- end }}
{{- end -}}

{{/* A proxy reaches them for us. */}}
{{- define "model-gateway.refuseVendors" -}}
{{- if not (or .Values.egressProxy.url .Values.egressProxy.existingSecret) }}
{{- $private := list }}
{{- range .Values.selfHosted.allow }}{{ range .ports }}{{ $private = append $private (int .) }}{{ end }}{{ end }}
{{- $public := list }}
{{- range .Values.networkPolicy.providerPorts }}{{ $public = append $public (int .) }}{{ end }}
{{- range $vendor, $url := .Values.vendors }}
{{- with $url }}
{{- $port := include "model-gateway.urlPort" . | int }}
{{- $place := include "model-gateway.urlPlace" . }}
{{- if and (eq $place "private") (not (has $port $private)) }}
- 'vendors.{{ $vendor }} is {{ . }}, but the NetworkPolicy opens port {{ $port }} of no private address: add a rule to networkPolicy.extraEgress.'
{{- else if and (eq $place "") (not (has $port (concat $public $private))) }}
- 'vendors.{{ $vendor }} is {{ . }}, but the NetworkPolicy does not open port {{ $port }}: add it to networkPolicy.providerPorts or, for a private address, a rule to networkPolicy.extraEgress.'
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "model-gateway.refuseSidecar" -}}
{{- if eq .Values.profile "sidecar" }}
{{- if not .Values.sidecar.containers }}
- 'profile is "sidecar" but sidecar.containers is empty: name the containers that the gateway serves.'
{{- end }}
{{- if not (or .Values.sidecar.existingSecret .Values.database.existingSecret) }}
- 'profile is "sidecar" but neither sidecar.existingSecret nor database.existingSecret is set: name a Secret with a service key ("{{ .Values.sidecar.serviceKeyKey }}") and provider keys ("{{ .Values.sidecar.providerKeysKey }}").'
{{- end }}
{{- if .Values.autoscaling.enabled }}
- 'autoscaling.enabled does not go with profile "sidecar": scale the application, and set autoscaling.enabled to false.'
{{- end }}
{{- if or .Values.ingress.enabled .Values.httpRoute.enabled }}
- 'ingress.enabled and httpRoute.enabled do not go with profile "sidecar", whose API listens on loopback: set both to false.'
{{- end }}
{{- if eq .Values.tables.source "watch" }}
- 'tables.source "watch" does not go with profile "sidecar", which has no API token: set it to "mounted".'
{{- end }}
{{- end }}
{{- end -}}
