{{/* What is computed from values: the tables document, times, sizes, numbers of replicas. */}}

{{/*
The tables document. Without changes it is the shipped file, comments included. Maps are merged one level deep by hand,
since the merge functions skip values such as false and 0.
*/}}
{{- define "model-gateway.tablesDocument" -}}
{{- if .Values.tables.document -}}
{{- $document := .Files.Get "files/tables.yaml" | fromYaml -}}
{{- range $part, $value := .Values.tables.document -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $document $part)) -}}
{{- range $key, $entry := $value -}}
{{- $_ := set (get $document $part) $key $entry -}}
{{- end -}}
{{- else -}}
{{- $_ := set $document $part $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $document -}}
{{- else -}}
{{- .Files.Get "files/tables.yaml" | trim -}}
{{- end -}}
{{- end -}}

{{/* The longest request that the tables allow. A ConfigMap of the user's own is not known here. */}}
{{- define "model-gateway.tablesRequestSeconds" -}}
{{- if .Values.tables.existingConfigMap -}}
300
{{- else -}}
{{- dig "timeouts" "request_seconds" 300 (include "model-gateway.tablesDocument" . | fromYaml) | ceil | int -}}
{{- end -}}
{{- end -}}

{{- define "model-gateway.requestSeconds" -}}
{{- if kindIs "invalid" .Values.drain.requestSeconds -}}
{{- include "model-gateway.tablesRequestSeconds" . -}}
{{- else -}}
{{- .Values.drain.requestSeconds | int -}}
{{- end -}}
{{- end -}}

{{/* A sidecar ends after its application, so that nobody is left to be served. */}}
{{- define "model-gateway.delaySeconds" -}}
{{- ternary .Values.drain.delaySeconds 0 (eq .Values.profile "server") | int -}}
{{- end -}}

{{/* The least grace period that cuts no stream. */}}
{{- define "model-gateway.neededGraceSeconds" -}}
{{- add (int .Values.drain.preStopSeconds) (include "model-gateway.delaySeconds" . | int) (include "model-gateway.requestSeconds" . | int) (int .Values.drain.flushSeconds) -}}
{{- end -}}

{{- define "model-gateway.graceSeconds" -}}
{{- if kindIs "invalid" .Values.drain.terminationGracePeriodSeconds -}}
{{- include "model-gateway.neededGraceSeconds" . -}}
{{- else -}}
{{- .Values.drain.terminationGracePeriodSeconds | int -}}
{{- end -}}
{{- end -}}

{{/* For proxies in front: a little longer than the longest request, so that ours is the error that is seen. */}}
{{- define "model-gateway.proxySeconds" -}}
{{- add (include "model-gateway.requestSeconds" . | int) 30 -}}
{{- end -}}

{{/* The fewest pods that are wanted at any time. */}}
{{- define "model-gateway.minReplicas" -}}
{{- ternary .Values.autoscaling.minReplicas .Values.replicaCount .Values.autoscaling.enabled | int -}}
{{- end -}}

{{/* The most pods that are wanted at any time. */}}
{{- define "model-gateway.mostReplicas" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled | int -}}
{{- end -}}

{{/* A `count` of pods, or a share `of` so many, rounded up as budgets and surges are. */}}
{{- define "model-gateway.podCount" -}}
{{- $count := toString .count -}}
{{- if hasSuffix "%" $count -}}
{{- div (add (mul .of (trimSuffix "%" $count | int)) 99) 100 -}}
{{- else -}}
{{- int $count -}}
{{- end -}}
{{- end -}}

{{/* Bytes of a quantity as memory is given in; empty when it is none. */}}
{{- define "model-gateway.bytes" -}}
{{- $text := ternary . (int64 . | toString) (kindIs "string" .) -}}
{{- $number := regexFind `^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?` $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if and $number (hasKey $units $unit) -}}
{{- mulf (float64 $number) (get $units $unit) | floor | int64 -}}
{{- end -}}
{{- end -}}

{{/* Heap size in MiB: three fifths of the memory limit; code, stacks, buffers and sockets lie outside it. Empty when there is no limit. */}}
{{- define "model-gateway.heapMiB" -}}
{{- with dig "limits" "memory" "" .Values.resources -}}
{{- with include "model-gateway.bytes" . -}}
{{- div (mul (int64 .) 3) (mul 5 1048576) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The most pods at a time: those that are wanted and those that a rollout starts beside them. */}}
{{- define "model-gateway.maxPods" -}}
{{- $wanted := include "model-gateway.mostReplicas" . | int -}}
{{- add $wanted (include "model-gateway.podCount" (dict "count" .Values.strategy.maxSurge "of" $wanted) | int) -}}
{{- end -}}

{{/*
Connections of a pod to Postgres itself beside its pool: 3 insert rows, 1 listens; where no pooler stands before the
others, 4 read logs and 3 are the admin API's.
*/}}
{{- define "model-gateway.fixedConnections" -}}
{{- ternary 4 (ternary 11 8 (ne .Values.adminApi.existingSecret "")) (ne .Values.database.directUrlKey "") -}}
{{- end -}}

{{/* Connections that are not the pods': a migration, two commands. */}}
{{- define "model-gateway.spareConnections" -}}
3
{{- end -}}

{{/*
Connections of a pod for accounts and keys: those asked for, else what the budget leaves each pod, 10 at most. Behind a
pooler they are the pooler's, and the budget of Postgres does not bound them.
*/}}
{{- define "model-gateway.poolSize" -}}
{{- if not (kindIs "invalid" .Values.database.poolSize) -}}
{{- .Values.database.poolSize | int -}}
{{- else if or (kindIs "invalid" .Values.database.maxConnections) .Values.database.directUrlKey -}}
10
{{- else -}}
{{- $shared := sub (int .Values.database.maxConnections) (include "model-gateway.spareConnections" . | int) -}}
{{- $each := sub (div $shared (include "model-gateway.maxPods" . | int | max 1)) (include "model-gateway.fixedConnections" . | int) -}}
{{- $each | min 10 | max 2 -}}
{{- end -}}
{{- end -}}

{{/* Connections to Postgres itself that all pods may open. */}}
{{- define "model-gateway.neededConnections" -}}
{{- $pool := ternary 0 (include "model-gateway.poolSize" . | int) (ne .Values.database.directUrlKey "") -}}
{{- add (mul (include "model-gateway.maxPods" . | int) (add $pool (include "model-gateway.fixedConnections" . | int))) (include "model-gateway.spareConnections" . | int) -}}
{{- end -}}
