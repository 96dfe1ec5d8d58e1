# release.mk: tarball, Debian packages, container images, and the tests that need a bare machine.

##@ Before a release

TARBALL := build/attnd-$(VERSION).tar.gz
in_a_clone = [ -e .git ] || { echo "$@: the tarball is made of a commit, so it takes a clone by git" >&2; exit 1; }
dist: ## build/attnd-VERSION.tar.gz: the sources of the last commit, the same bytes every time
	$(Q)$(in_a_clone)
	$(Q)mkdir -p build
	$(Q)git archive --prefix=attnd-$(VERSION)/ -o $(TARBALL:.gz=) HEAD
	$(Q)gzip -9nf $(TARBALL:.gz=)
	@echo $(TARBALL)

deb: ## Debian packages in build/deb: attnd, libattn with its SONAME, libattn-dev (DEB_BUILD_OPTIONS=nocheck leaves out the tests)
	$(Q)$(in_a_clone)
	$(Q)mk/install_packages.sh $(TEST_PACKAGES) build-essential debhelper dpkg-dev git
	+$(Q)$(MAKE) --no-print-directory dist
	$(Q)VERSION='$(VERSION)' TARBALL='$(TARBALL)' packaging/deb.sh $(RUN_PACKAGES)

image: ## container images by docker, podman or buildah (docker/image.sh says what can be set)
	$(Q)docker/image.sh minimal full

image-test: $(BUILD)/attnd ## build the images, run them, check them from outside; balancer, Pod, manifests, dashboard
	$(Q)tests/images/image.sh $(OR_SKIPPED)
	$(Q)tests/images/compose.sh $(OR_SKIPPED)
	$(Q)tests/images/pod.sh $(OR_SKIPPED)
	$(Q)tests/images/manifests/run.sh $(OR_SKIPPED)
	$(Q)python3 tests/images/balancer.py --attnd $(BUILD)/attnd $(OR_SKIPPED)
	$(Q)python3 tests/images/dashboard.py --attnd $(BUILD)/attnd $(OR_SKIPPED)

cluster-test: ## the Deployment in the cluster of KUBECONFIG, under load (IMAGE=localhost/attnd:0.2.0); KServe's objects (KSERVE_CRDS)
	$(Q)tests/images/cluster.sh $(IMAGE) $(OR_SKIPPED)
	$(Q)tests/images/manifests/run.sh $(OR_SKIPPED)

fresh: ## the README on bare machines, Debian 12 and 13 (root; takes minutes)
	$(Q)tests/machines/fresh.sh bookworm
	$(Q)tests/machines/fresh.sh trixie
