# packages.mk: required packages, with Debian's names. INSTALL=no: `make run`, `make test` and `make deb` install
# nothing, and say what is missing.

RUN_PACKAGES := gcc libc6-dev pkgconf libmicrohttpd-dev libjansson-dev libopenblas-dev zlib1g-dev \
                libzstd-dev libpng-dev libfreetype-dev nettle-dev libutf8proc-dev libpcre2-dev \
                fonts-dejavu-core fonts-wqy-microhei curl esbuild
TEST_PACKAGES := $(RUN_PACKAGES) g++ check libsubunit-dev libcurl4-gnutls-dev python3 python3-numpy nodejs strace procps \
                 openssl

# Further packages of some targets. Before it builds, make checks the packages of the requested targets.
NEEDS_check := check libsubunit-dev python3
NEEDS_quick := check libsubunit-dev python3
NEEDS_ops := python3 openssl curl
NEEDS_readme := python3 curl
NEEDS_examples := python3 nodejs curl libcurl4-gnutls-dev
NEEDS_demo-model := python3 python3-numpy
NEEDS_small-model := python3 python3-numpy python3-regex
NEEDS_torture := python3 openssl
NEEDS_tidy := clang-tidy
NEEDS_format := clang-format
NEEDS_format-check := clang-format
NEEDS_fuzz-targets := clang
NEEDS_bench-peers := npm
NEEDS_dist := git
$(foreach t,layers replay cases kernels layer-tests protocol load-memory overload openapi vectors conformance fuzz chaos soak bench \
    bench-check bench-aims bench-json bench-models bench-http bench-replicas,$(eval NEEDS_$(t) := python3))

needed := $(sort $(foreach goal,$(MAKECMDGOALS),$(NEEDS_$(goal))))
missing := $(if $(needed),$(if $(filter deps test,$(MAKECMDGOALS)),,$(shell mk/missing_packages.sh $(needed))))
$(if $(missing),$(error missing: $(missing); install by: \
    $(if $(filter-out $(TEST_PACKAGES),$(missing)),apt-get install $(missing),make deps)))
