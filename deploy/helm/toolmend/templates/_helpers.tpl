{{- define "toolmend.name" -}}
{{- if contains "toolmend" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-toolmend" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "toolmend.selector" -}}
app.kubernetes.io/name: toolmend
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolmend.labels" -}}
{{ include "toolmend.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
