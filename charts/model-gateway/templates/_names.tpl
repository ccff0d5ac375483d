{{/* Names and labels. */}}

{{- define "model-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough that every suffix of ours still fits into 63 characters. */}}
{{- define "model-gateway.fullname" -}}
{{- $name := include "model-gateway.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* As much of a text as a label may hold, which begins and ends with a letter or a digit. */}}
{{- define "model-gateway.labelValue" -}}
{{- . | replace "+" "_" | trunc 63 | trimAll "-_." -}}
{{- end -}}

{{- define "model-gateway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "model-gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What selects the gateway's own pods, and not those of Jobs and tests. */}}
{{- define "model-gateway.podSelectorLabels" -}}
{{ include "model-gateway.selectorLabels" . }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "model-gateway.labels" -}}
helm.sh/chart: {{ include "model-gateway.labelValue" (printf "%s-%s" .Chart.Name .Chart.Version) }}
{{ include "model-gateway.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | include "model-gateway.labelValue" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "model-gateway.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "model-gateway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "model-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A file of rules or of a dashboard. What looks for objects by the chart's name finds those of this release too. */}}
{{- define "model-gateway.observing" -}}
{{- $root := first . -}}
{{- $text := $root.Files.Get (last .) -}}
{{- $fullname := include "model-gateway.fullname" $root -}}
{{- if contains "model-gateway" $fullname -}}
{{- $text -}}
{{- else -}}
{{- $text | replace ".*model-gateway.*" (printf ".*model-gateway.*|(.*-)?%s" $fullname) -}}
{{- end -}}
{{- end -}}

{{- define "model-gateway.tablesConfigMap" -}}
{{- default (printf "%s-tables" (include "model-gateway.fullname" .)) .Values.tables.existingConfigMap -}}
{{- end -}}
