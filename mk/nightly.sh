#!/usr/bin/env bash
# nightly.sh [PATTERN]: the checks that take long or break seldom. One line a step, and a verdict; PATTERN chooses steps by name.
#
# The output of each step stands in build/nightly/. What a step needs is installed; a step that this machine cannot run says why.
set -u
cd "$(dirname "$0")/.." || exit 1
terse=1 only=${1:-}
. tests/support/steps.sh
logs=build/nightly
mkdir -p "$logs"

attnd=build/release/attnd
packages() {
    make deps && mk/install_packages.sh clang clang-tidy clang-format python3-regex &&
        make -j"$jobs" built-for-tests CC=gcc WERROR=1
}
long_tests() { ATTN_LONG=1 make -j"$jobs" check ops openapi model-tests REWRITES=200 CC=gcc WERROR=1; }
bench_check() { make -j"$jobs" bench-check CC=gcc WERROR=1; }
few_kernels() { make -j"$jobs" kernels CC=gcc WERROR=1; }
every_float() { make -j"$jobs" numbers CC=gcc WERROR=1; }
clang_tests() { make -j"$jobs" all check CC=clang BUILD=build/clang WERROR=1; }
sanitizers() { make -j"$jobs" check openapi models model-tests layer-tests words MODE=sanitize; }
# What has threads of its own to test, and then everything through a server: alone, arithmetic takes an hour in this mode.
threaded='arena at_once cache_store crowd store version pool determinism memory executor metrics keys files prepared_weights panels log_writer stream tensor_write reduce fsm sender daemon layer_digest health'
thread_sanitizer() { make -j"$jobs" check cases MODE=thread CHECK="$threaded"; }
random_requests() { make -j"$jobs" fuzz FUZZ_SECONDS=60 CC=gcc WERROR=1; }
# libFuzzer has a package of its own, by clang's version.
fuzz_targets() {
    mk/install_packages.sh "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" &&
        make -j"$jobs" fuzz-targets FUZZ_SECONDS=10 WERROR=1
}
failing_calls() { make -j"$jobs" torture TORTURE_SECONDS=45 CC=gcc WERROR=1; }
memory_mixes() { python3 tests/faults/memory.py --attnd "$attnd"; }
failing_network() { make -j"$jobs" chaos TORTURE_SECONDS=15 CC=gcc WERROR=1; }
page_times() { tests/page/run.sh "$attnd" --times; }
page() { ATTN_LONG=1 tests/page/run.sh "$attnd"; }
# Both images, the first one built twice: the second build must give the same bytes.
images() { tests/images/image.sh; }

step packages packages
step long-tests long_tests
step kernels few_kernels
step demo-model make demo-model
step small-model make small-model
step packages-test make packages-test
step bench-check bench_check
step every-float every_float
step clang clang_tests
step sanitizers sanitizers
step threads thread_sanitizer
step random-requests random_requests
step fuzz-targets fuzz_targets
step oss-fuzz tests/fuzz/oss-fuzz/run.sh
step failing-calls failing_calls
step failing-network failing_network
step memory memory_mixes
step page-times page_times
step page page
step firefox tests/page/firefox/run.sh "$attnd"
step openapi-lint tests/api/openapi/lint.sh
step generated-clients tests/others/generators/run.sh "$attnd"
step tidy make tidy
step images images
step pod tests/images/pod.sh
step kubernetes tests/images/manifests/run.sh
step haproxy python3 tests/images/balancer.py --attnd "$attnd"
step prometheus python3 tests/images/dashboard.py --attnd "$attnd"
step arm64 tests/machines/arm64.sh
conclude_steps
