#!/bin/sh
# run.sh: docker/kubernetes against the schemas of Kubernetes, KEDA and the Prometheus operator from npm; as kustomize makes it,
# where kubectl is (KUBECTL names another one). KSERVE_CRDS='FILE…' names KServe's definitions, which no package has: without them its objects are skipped.
#
# Ends with 77, and why on its last line, when node, npm or the packages cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=manifests
kubectl=${KUBECTL:-kubectl}
. tests/support/checks.sh
need_node tests/images/manifests
if command -v "$kubectl" >/dev/null; then
    for overlay in base overlays/pvc overlays/models overlays/keda overlays/image-volume overlays/keys overlays/one-node overlays/public; do
        "$kubectl" kustomize "docker/kubernetes/$overlay" > "$work/$(basename "$overlay").yaml" || exit 1
    done
else
    cp docker/kubernetes/base/[!k]*.yaml docker/kubernetes/overlays/keda/scaledobject.yaml \
        docker/kubernetes/overlays/pvc/claim.yaml docker/kubernetes/overlays/public/[im]*.yaml "$work"
fi
check "the schemas are met" node tests/images/manifests/check.mjs "$work"/*.yaml docker/kubernetes/overlays/models/fill.yaml docker/kubernetes/kserve/*.yaml
if command -v "$kubectl" >/dev/null; then
    check "the overlay public/ uses its image, its keys, its Ingress and its monitor" \
        node tests/images/manifests/public.mjs "$work/public.yaml"
    check "the autoscaler alone sets replicas, KEDA's Prometheus is admitted, models/ mounts what fill.yaml fills" \
        node tests/images/manifests/overlays.mjs "$work" docker/kubernetes/overlays/models/fill.yaml
else
    skip "no kubectl: the overlays as a whole"
fi
if [ -n "${KSERVE_CRDS:-}" ]; then
    # shellcheck disable=SC2086 # words on purpose: files
    check "KServe's definitions are met" node tests/images/manifests/kserve.mjs $KSERVE_CRDS -- docker/kubernetes/kserve/*.yaml
else
    skip "KServe's objects: KSERVE_CRDS names no file with its definitions"
fi
conclude
