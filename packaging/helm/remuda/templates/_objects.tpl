{{- /* remuda.image: "repository:tag@digest" of an image's values, the tag being the default where none is said */}}
{{- define "remuda.image" -}}
{{- $image := index . 0 -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 1) }}{{ end }}
{{- end }}

{{- /* remuda.place: what every workload takes of the values: (object, values of the part, $) */}}
{{- define "remuda.place" -}}
{{- $object := index . 0 }}{{ $part := index . 1 }}{{ $root := index . 2 -}}
{{- $pod := $object.spec.template.spec -}}
{{- if $root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" $root.Values.imagePullSecrets }}{{ end -}}
{{- if $part.tolerations }}{{ $_ := set $pod "tolerations" $part.tolerations }}{{ else }}{{ $_ := unset $pod "tolerations" }}{{ end -}}
{{- if $part.nodeSelector }}{{ $_ := set $pod "nodeSelector" $part.nodeSelector }}{{ end -}}
{{- if hasKey $part "replicas" }}{{ $_ := set $object.spec "replicas" $part.replicas }}{{ end -}}
{{- $main := last $pod.containers -}}
{{- $_ := set $main "image" (include "remuda.image" (list $root.Values.image $root.Chart.AppVersion)) -}}
{{- $_ := set $main "imagePullPolicy" $root.Values.image.pullPolicy -}}
{{- $_ := set $main "resources" $part.resources -}}
{{- $_ := set $main "args" (concat $main.args $part.extraArgs) -}}
{{- end }}

{{- /* remuda.driver: the agent as a DRA driver, as the patch of manifests/dra has it */}}
{{- define "remuda.driver" -}}
{{- $pod := .spec.template.spec -}}
{{- $main := first $pod.containers -}}
{{- $_ := set $main "args" (concat $main.args (list "--dra=auto" "--pod-uid=$(POD_UID)")) -}}
{{- $_ := set $main "env" (append $main.env (dict "name" "POD_UID" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.uid")))) -}}
{{- range list (list "plugins" "/var/lib/kubelet/plugins/remuda.dev") (list "plugins-registry" "/var/lib/kubelet/plugins_registry") (list "cdi" "/var/run/cdi") -}}
{{- $_ := set $main "volumeMounts" (append $main.volumeMounts (dict "name" (first .) "mountPath" (last .))) -}}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" (first .) "hostPath" (dict "path" (last .) "type" "DirectoryOrCreate"))) -}}
{{- end -}}
{{- end }}

{{- /* remuda.scheduler: kube-scheduler beside the extender; of the cluster's own version, without what a vendor adds to it (-gke.100, +k3s1) */}}
{{- define "remuda.scheduler" -}}
{{- $object := index . 0 }}{{ $root := index . 1 -}}
{{- $part := $root.Values.scheduler -}}
{{- $version := semver $root.Capabilities.KubeVersion.Version -}}
{{- $first := first $object.spec.template.spec.containers -}}
{{- $extender := last $object.spec.template.spec.containers -}}
{{- if $part.taintAllBad }}{{ $_ := set $extender "args" (append $extender.args "--taint-all-bad") }}{{ end -}}
{{- $_ := set $first "image" (include "remuda.image" (list $part.kubeScheduler.image (printf "v%d.%d.%d" $version.Major $version.Minor $version.Patch))) -}}
{{- $_ := set $first "imagePullPolicy" $part.kubeScheduler.image.pullPolicy -}}
{{- $_ := set $first "resources" $part.kubeScheduler.resources -}}
{{- if $part.resourceNames }}{{/* kube-scheduler reads its configuration when it starts */}}
{{- $_ := set $object.spec.template.metadata "annotations" (dict "remuda.dev/resource-names" (join "," $part.resourceNames)) -}}
{{- end -}}
{{- end }}

{{- /* remuda.controller: pods of jobs take remuda-launch from the image of the values; the manifests' own is what the program knows. Jobs that
name no image have the trainer's */}}
{{- define "remuda.controller" -}}
{{- $object := index . 0 }}{{ $root := index . 1 -}}
{{- $image := include "remuda.image" (list $root.Values.image $root.Chart.AppVersion) -}}
{{- $trainer := include "remuda.image" (list $root.Values.jobs.trainerImage $root.Chart.AppVersion) -}}
{{- $main := last $object.spec.template.spec.containers -}}
{{- $args := list -}}
{{- range $main.args }}{{ $args = append $args (regexReplaceAll "^--job-image=.*" . (printf "--job-image=%s" $trainer)) }}{{ end -}}
{{- if ne $image (printf "remuda.dev/remuda:%s" $root.Chart.AppVersion) }}{{ $args = append $args (printf "--launcher-image=%s" $image) }}{{ end -}}
{{- $secrets := list -}}
{{- range $root.Values.imagePullSecrets }}{{ $secrets = append $secrets .name }}{{ end -}}
{{- if $secrets }}{{ $args = append $args (printf "--job-pull-secrets=%s" (join "," $secrets)) }}{{ end -}}
{{- if $root.Values.jobs.kueue }}{{ $args = append $args "--kueue=on" }}{{ end -}}
{{- if $root.Values.jobs.plannedClaims }}{{ $args = append $args "--planned-claims=on" }}{{ end -}}
{{- with $root.Values.jobs.namespaces }}{{ $args = append $args (printf "--namespaces=%s" (join "," (uniq .))) }}{{ end -}}
{{- $_ := set $main "args" $args -}}
{{- end }}

{{- /* remuda.data: the values' configuration in place of the shipped text, comments and all, where it is another */}}
{{- define "remuda.data" -}}
{{- $data := index . 0 }}{{ $key := index . 1 }}{{ $wanted := index . 2 -}}
{{- if ne (toJson (fromYaml (get $data $key))) (toJson $wanted) }}{{ $_ := set $data $key (toYaml $wanted) }}{{ end -}}
{{- end }}

{{- define "remuda.config" -}}
{{- $object := index . 0 }}{{ $root := index . 1 -}}
{{- $data := $object.data -}}
{{- if eq $object.metadata.name "remuda-agent" -}}
{{- include "remuda.data" (list $data "agent.yaml" $root.Values.agent.config) -}}
{{- include "remuda.data" (list $data "programs.yaml" (dict "programs" $root.Values.agent.programs)) -}}
{{- else -}}
{{- include "remuda.data" (list $data "extender.yaml" $root.Values.scheduler.config) -}}
{{- $shipped := get $data "scheduler.yaml" | fromYaml -}}
{{- $extender := first $shipped.extenders -}}
{{- range $root.Values.scheduler.resourceNames }}{{ $_ := set $extender "managedResources" (append $extender.managedResources (dict "name" .)) }}{{ end -}}
{{- include "remuda.data" (list $data "scheduler.yaml" $shipped) -}}
{{- end -}}
{{- end }}

{{- /* remuda.scoped: where jobs.namespaces names some, the controller's rights are those of manifests/controller-namespaces */}}
{{- define "remuda.scoped" -}}
{{- $object := index . 0 }}{{ $root := index . 1 -}}
{{- $scoped := dict "remuda-controller" "clusterrole.yaml" "remuda-controller-kueue" "kueue/clusterrole.yaml" -}}
{{- if and $root.Values.jobs.namespaces (eq $object.kind "ClusterRole") (hasKey $scoped $object.metadata.name) -}}
{{- $_ := set $object "rules" (get (printf "files/manifests/controller-namespaces/%s" (get $scoped $object.metadata.name) | $root.Files.Get | fromYaml) "rules") -}}
{{- end -}}
{{- end }}

{{- /* remuda.object: one object of the manifests, as the values want it: (object, values of its part, $[, its namespace: the release's]) */}}
{{- define "remuda.object" -}}
{{- $object := index . 0 }}{{ $part := index . 1 }}{{ $root := index . 2 -}}
{{- $metadata := $object.metadata -}}
{{- include "remuda.scoped" (list $object $root) -}}
{{- if not (and $root.Values.jobs.namespaces (eq $object.kind "ClusterRole") (eq $metadata.name "remuda-job-namespace")) }}
{{- $ours := dict "app.kubernetes.io/part-of" "remuda" "app.kubernetes.io/managed-by" $root.Release.Service "app.kubernetes.io/instance" $root.Release.Name -}}
{{- $_ := set $metadata "labels" (merge $ours ($metadata.labels | default dict)) -}}
{{- if has $object.kind (list "ServiceAccount" "ConfigMap" "DaemonSet" "Deployment" "NetworkPolicy" "Role" "RoleBinding") -}}
{{- $_ := set $metadata "namespace" (ternary $root.Release.Namespace (last .) (eq (len .) 3)) -}}
{{- end -}}
{{- range $object.subjects }}{{ if eq .kind "ServiceAccount" }}{{ $_ := set . "namespace" $root.Release.Namespace }}{{ end }}{{ end -}}
{{- if eq $object.kind "Namespace" }}{{ $_ := set $metadata "name" $root.Release.Namespace }}{{ end -}}
{{- if and (eq $object.kind "CustomResourceDefinition") $root.Values.crds.keep -}}
{{- $_ := set $metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- end -}}
{{- if eq $object.kind "ConfigMap" }}{{ include "remuda.config" (list $object $root) }}{{ end -}}
{{- if eq $metadata.name "remuda-controller" | and (eq $object.kind "Deployment") }}{{ include "remuda.controller" (list $object $root) }}{{ end -}}
{{- if and (eq $object.kind "DaemonSet") $root.Values.agent.dra }}{{ include "remuda.driver" $object }}{{ end -}}
{{- if has $object.kind (list "DaemonSet" "Deployment") }}{{ include "remuda.place" (list $object $part $root) }}{{ end -}}
{{- if eq $metadata.name "remuda-scheduler" | and (eq $object.kind "Deployment") }}{{ include "remuda.scheduler" (list $object $root) }}{{ end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{- /* remuda.files: every object of the files that a pattern matches: (pattern, values of the part, $) */}}
{{- define "remuda.files" -}}
{{- $part := index . 1 }}{{ $root := index . 2 -}}
{{- range $path, $_ := $root.Files.Glob (index . 0) }}
{{- range regexSplit "(?m)^---$" ($root.Files.Get $path) -1 }}
{{- include "remuda.object" (list (fromYaml .) $part $root) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* remuda.namespaces: the controller's Roles and their bindings in each of jobs.namespaces */}}
{{- define "remuda.namespaces" -}}
{{- $root := . -}}
{{- $files := ternary (list "role.yaml" "kueue/role.yaml") (list "role.yaml") $root.Values.jobs.kueue -}}
{{- range $namespace := uniq $root.Values.jobs.namespaces }}
{{- range $file := $files }}
{{- range regexSplit "(?m)^---$" (printf "files/manifests/controller-namespaces/%s" $file | $root.Files.Get) -1 }}
{{- include "remuda.object" (list (fromYaml .) dict $root $namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
