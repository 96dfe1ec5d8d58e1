#!/bin/sh
# run.sh: docker/kubernetes against the schemas of Kubernetes and KEDA from npm; as kustomize makes it, where kubectl is.
#
# Ends with 77, and why on its last line, when node, npm or the packages cannot be had.
set -u
cd "$(dirname "$0")" || exit 1
root=../../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}

"$root/mk/install_packages.sh" nodejs npm || skip "no node or npm, and no way to install them"
wanted=$(cksum < package.json)
if [ "$(cat node_modules/.made-for 2>/dev/null)" != "$wanted" ]; then
    npm install --silent --ignore-scripts --no-package-lock --no-audit --no-fund ||
        skip "npm could not get the packages of tests/images/manifests/package.json"
    echo "$wanted" > node_modules/.made-for
fi
if command -v kubectl >/dev/null; then
    for overlay in base overlays/pvc overlays/keda overlays/image-volume overlays/keys; do
        kubectl kustomize "$root/docker/kubernetes/$overlay" > "$work/$(basename "$overlay").yaml" || exit 1
    done
else
    cp "$root"/docker/kubernetes/base/[!k]*.yaml "$root"/docker/kubernetes/overlays/keda/scaledobject.yaml \
        "$root"/docker/kubernetes/overlays/pvc/claim.yaml "$work"
fi
node check.mjs "$work"/*.yaml "$root"/docker/kubernetes/kserve/*.yaml
