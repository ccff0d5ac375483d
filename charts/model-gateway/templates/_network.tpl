{{/* Peers for a store whose place is not known: private networks, which do not hold the metadata address. */}}
{{- define "model-gateway.privatePeers" -}}
- ipBlock: { cidr: 10.0.0.0/8 }
- ipBlock: { cidr: 172.16.0.0/12 }
- ipBlock: { cidr: 192.168.0.0/16 }
- ipBlock: { cidr: 100.64.0.0/10 }
- ipBlock: { cidr: fc00::/7 }
{{- end -}}

{{/* The database, which the migration needs as well. */}}
{{- define "model-gateway.databaseEgress" -}}
- to:
    {{- with .Values.networkPolicy.dns }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - { port: 53, protocol: UDP }
    - { port: 53, protocol: TCP }
- to:
    {{- with .Values.networkPolicy.database.to }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "model-gateway.privatePeers" . | nindent 4 }}
    {{- end }}
  ports:
    {{- range concat (list .Values.networkPolicy.database.port) .Values.networkPolicy.database.morePorts | uniq }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
{{- end -}}

{{- define "model-gateway.telemetryEgress" -}}
- to:
    {{- with .Values.networkPolicy.otlp.to }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "model-gateway.privatePeers" . | nindent 4 }}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.otlp.ports }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
{{- end -}}

{{- define "model-gateway.proxyEgress" -}}
- to:
    {{- with .Values.networkPolicy.proxy.to }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "model-gateway.privatePeers" . | nindent 4 }}
    {{- end }}
  ports:
    - { port: {{ .Values.networkPolicy.proxy.port }}, protocol: TCP }
{{- end -}}

{{/* Everything public: no private, carrier, loopback or link-local address (which is where clouds keep credentials). */}}
{{- define "model-gateway.providerEgress" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.168.0.0/16
    - ipBlock:
        cidr: ::/0
        except:
          - ::1/128
          - fc00::/7
          - fe80::/10
          # the same IPv4 networks behind NAT64
          - 64:ff9b::a00:0/104
          - 64:ff9b::6440:0/106
          - 64:ff9b::7f00:0/104
          - 64:ff9b::a9fe:0/112
          - 64:ff9b::ac10:0/108
          - 64:ff9b::c0a8:0/112
  ports:
    {{- range .Values.networkPolicy.providerPorts }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
{{- end -}}
