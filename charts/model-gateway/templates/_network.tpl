{{/* Peers for a store whose place is not known: private networks, which do not hold the metadata address. */}}
{{- define "model-gateway.privatePeers" -}}
- ipBlock: { cidr: 10.0.0.0/8 }
- ipBlock: { cidr: 172.16.0.0/12 }
- ipBlock: { cidr: 192.168.0.0/16 }
- ipBlock: { cidr: 100.64.0.0/10 }
- ipBlock: { cidr: fc00::/7 }
{{- end -}}

{{/* Everything public: no private, carrier, loopback or link-local address (which is where clouds keep credentials). */}}
{{- define "model-gateway.publicPeers" -}}
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
{{- end -}}

{{/* The port of a URL. */}}
{{- define "model-gateway.urlPort" -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}

{{/* Where the host of a URL is known to be without asking DNS: `loopback`, `private`; else empty. */}}
{{- define "model-gateway.urlPlace" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (urlParse .).host "" -}}
{{- if regexMatch `^(localhost|127\.[0-9.]+|\[::1\])$` $host -}}
loopback
{{- else if regexMatch `^[^.:]+$|\.(svc|local|internal)$|\.svc\.` $host -}}
private
{{- else if regexMatch `^(10|192\.168|172\.(1[6-9]|2[0-9]|3[01])|100\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7]))\.[0-9.]+$|^\[f[cd]` $host -}}
private
{{- end -}}
{{- end -}}

{{/* The network of a CIDR whose address lies inside of it: 10.20.0.5/24 → 10.20.0.0/24. Empty for one that is right. */}}
{{- define "model-gateway.networkAround" -}}
{{- $address := regexReplaceAll "/.*$" . "" -}}
{{- $length := regexFind "[0-9]+$" . | int -}}
{{- $isV6 := contains ":" $address -}}
{{- $bits := ternary 16 8 $isV6 -}}
{{- $groups := splitList (ternary ":" "." $isV6) $address -}}
{{- if contains "::" $address -}}
{{- $ends := splitList "::" $address -}}
{{- $left := splitList ":" (first $ends) | compact -}}
{{- $right := splitList ":" (last $ends) | compact -}}
{{- $groups = $left -}}
{{- range until (sub 8 (add (len $left) (len $right)) | max 0 | int) }}{{ $groups = append $groups "0" }}{{ end -}}
{{- $groups = concat $groups $right -}}
{{- end -}}
{{- $network := list -}}
{{- $isInside := false -}}
{{- range $index, $group := $groups -}}
{{- $value := ternary (printf "0x%s" $group) $group $isV6 | int64 -}}
{{- $block := 1 -}}
{{- range until (sub (mul $bits (add1 $index)) $length | min $bits | max 0 | int) }}{{ $block = mul $block 2 }}{{ end -}}
{{- $rest := mod $value $block -}}
{{- if $rest }}{{ $isInside = true }}{{ end -}}
{{- $network = append $network (printf (ternary "%x" "%d" $isV6) (sub $value $rest)) -}}
{{- end -}}
{{- if $isInside -}}
{{- join (ternary ":" "." $isV6) $network }}/{{ $length -}}
{{- end -}}
{{- end -}}

{{/* Families of the API's Service. Two go with a policy for two only. */}}
{{- define "model-gateway.ipFamilies" -}}
{{- $families := default list .Values.service.ipFamilies -}}
{{- with default (ternary "PreferDualStack" "" (gt (len $families) 1)) .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with $families }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* One family of those: with two, Prometheus would find each pod twice, and sums would be double. */}}
{{- define "model-gateway.metricsIpFamily" -}}
{{- $families := default list .Values.service.ipFamilies -}}
{{- if or $families .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: SingleStack
{{- end }}
{{- with $families }}
ipFamilies: {{ list (first .) | toJson }}
{{- end }}
{{- end -}}

{{/* The database, which the migration needs as well. */}}
{{- define "model-gateway.databaseEgress" -}}
- to:
    {{- with .Values.networkPolicy.dns }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "model-gateway.privatePeers" . | nindent 4 }}
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

{{/* Where spans go: from the collector beside the gateway, or from the gateway. */}}
{{- define "model-gateway.otlpTarget" -}}
{{- ternary .Values.otelCollector.exportEndpoint .Values.telemetry.otlpEndpoint .Values.otelCollector.enabled -}}
{{- end -}}

{{/* The port of a target that only TLS makes fit for the open network, and that is not said to be elsewhere; else empty. */}}
{{- define "model-gateway.publicOtlpPort" -}}
{{- $target := include "model-gateway.otlpTarget" . -}}
{{- if and (hasPrefix "https:" $target) (not .Values.networkPolicy.otlp.to) (not (include "model-gateway.urlPlace" $target)) -}}
{{- include "model-gateway.urlPort" $target -}}
{{- end -}}
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
{{- with include "model-gateway.publicOtlpPort" . }}
- to:
    {{- include "model-gateway.publicPeers" $ | nindent 4 }}
  ports:
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

{{- define "model-gateway.providerEgress" -}}
- to:
    {{- include "model-gateway.publicPeers" . | nindent 4 }}
  ports:
    {{- range .Values.networkPolicy.providerPorts }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
{{- end -}}
