{{/*
Annotations under which a stream of minutes passes: no buffering, read timeouts above the longest request, no repetition
of a POST. Traefik neither buffers nor limits the answer's time, so it needs none.
*/}}
{{- define "model-gateway.ingressPreset" -}}
{{- $seconds := include "model-gateway.proxySeconds" . -}}
{{- if eq .Values.ingress.preset "nginx" }}
nginx.ingress.kubernetes.io/proxy-buffering: 'off'
nginx.ingress.kubernetes.io/proxy-http-version: '1.1'
nginx.ingress.kubernetes.io/proxy-read-timeout: {{ $seconds | quote }}
nginx.ingress.kubernetes.io/proxy-send-timeout: {{ $seconds | quote }}
nginx.ingress.kubernetes.io/proxy-next-upstream: 'off'
# Bodies pass as they arrive: no prompt lies on the proxy's disk, and the gateway itself refuses what is too large.
nginx.ingress.kubernetes.io/proxy-request-buffering: 'off'
nginx.ingress.kubernetes.io/proxy-body-size: '0'
{{- else if eq .Values.ingress.preset "haproxy" }}
# HAProxy Technologies' controller. HAProxy keeps each event for up to 200 ms, unless it is told not to.
haproxy.org/timeout-server: {{ $seconds }}s
haproxy.org/backend-config-snippet: option http-no-delay
# the community's controller
haproxy-ingress.github.io/timeout-server: {{ $seconds }}s
haproxy-ingress.github.io/config-backend: option http-no-delay
{{- else if eq .Values.ingress.preset "alb" }}
alb.ingress.kubernetes.io/target-type: ip
alb.ingress.kubernetes.io/load-balancer-attributes: idle_timeout.timeout_seconds={{ $seconds }}
alb.ingress.kubernetes.io/target-group-attributes: deregistration_delay.timeout_seconds={{ $seconds }}
# Probes are not on the API port; there an unauthenticated call is answered 401.
alb.ingress.kubernetes.io/healthcheck-path: /v1/models
alb.ingress.kubernetes.io/success-codes: '401'
{{- end }}
{{- end -}}
