#!/bin/sh
# run.sh: docker/kubernetes against the schemas of Kubernetes and KEDA from npm; as kustomize makes it, where kubectl is.
#
# Ends with 77, and why on its last line, when node, npm or the packages cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=manifests
. tests/support/checks.sh
need_node tests/images/manifests
if command -v kubectl >/dev/null; then
    for overlay in base overlays/pvc overlays/keda overlays/image-volume overlays/keys; do
        kubectl kustomize "docker/kubernetes/$overlay" > "$work/$(basename "$overlay").yaml" || exit 1
    done
else
    cp docker/kubernetes/base/[!k]*.yaml docker/kubernetes/overlays/keda/scaledobject.yaml \
        docker/kubernetes/overlays/pvc/claim.yaml "$work"
fi
check "the schemas are met" node tests/images/manifests/check.mjs "$work"/*.yaml docker/kubernetes/kserve/*.yaml
conclude
