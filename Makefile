# attnd: attention as a service. `make help` lists what can be made; everything is built under build/$(MODE).
#
#   MODE=release|sanitize|thread|coverage   what to build      WERROR=1   warnings are errors
#   V=1                                     show commands      CFLAGS, LDFLAGS, CC … are yours and come last
#   STATIC=1    a server that needs no shared library (its libmicrohttpd must have no TLS)
#   STATIC=blas a server that has OpenBLAS in it, without the half of it that is for complex numbers

comma := ,
MODE ?= release
BUILD ?= build/$(MODE)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
UNITDIR ?= $(PREFIX)/lib/systemd/system
PKG_CONFIG ?= pkg-config
NM ?= nm
Q := $(if $(filter 1,$(V)),,@)
VERSION := $(shell cat VERSION)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# Debian's names of what running and testing take, for `make run` and `make test`.
RUN_PACKAGES := gcc libc6-dev pkgconf libmicrohttpd-dev libjansson-dev libopenblas-dev zlib1g-dev \
                libzstd-dev libpng-dev libfreetype-dev nettle-dev fonts-dejavu-core fonts-wqy-microhei curl
TEST_PACKAGES := $(RUN_PACKAGES) check libsubunit-dev libcurl4-gnutls-dev python3 nodejs strace procps openssl

# And what some targets take besides. Of the targets that were asked for, it is looked at before anything is built.
NEEDS_check := check libsubunit-dev python3
NEEDS_ops := python3 openssl curl
NEEDS_readme := python3 curl
NEEDS_examples := python3 nodejs curl libcurl4-gnutls-dev
NEEDS_torture := python3 openssl
NEEDS_tidy := clang-tidy
NEEDS_format := clang-format
NEEDS_format-check := clang-format
NEEDS_fuzz-targets := clang
NEEDS_bench-peers := npm
NEEDS_dist := git
$(foreach t,replay cases layer-tests protocol load-memory overload openapi vectors conformance fuzz chaos soak bench bench-json bench-http \
    bench-replicas,$(eval NEEDS_$(t) := python3))
needed := $(sort $(foreach goal,$(MAKECMDGOALS),$(NEEDS_$(goal))))
missing := $(if $(needed),$(if $(filter deps test,$(MAKECMDGOALS)),,$(shell scripts/missing_packages.sh $(needed))))
$(if $(missing),$(error missing: $(missing); install by: \
    $(if $(filter-out $(TEST_PACKAGES),$(missing)),apt-get install $(missing),make deps)))

PKGS_SERVER := libmicrohttpd jansson zlib libzstd libpng freetype2 nettle
# Certificates, where libmicrohttpd was built with TLS; where not, --tls-cert is refused.
PKGS_SERVER += $(shell $(PKG_CONFIG) --print-requires-private libmicrohttpd 2>/dev/null | grep -x gnutls)
PKGS_CORE := openblas
PKGS_TESTS := check
pkg = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
PKG_STATIC := $(if $(filter 1,$(STATIC)),--static)
CFLAGS_CORE := $(call pkg,--cflags,$(PKGS_CORE))
CFLAGS_SERVER := $(call pkg,--cflags,$(PKGS_SERVER))
CFLAGS_TESTS := $(call pkg,--cflags,$(PKGS_TESTS))
# The Fortran library is for LAPACK, of which we call nothing.
LIBS_CORE := $(patsubst -lopenblas,$(if $(STATIC),-l:libopenblas.a,-lopenblas),$(filter-out -lgfortran,\
             $(call pkg,$(PKG_STATIC) --libs,$(PKGS_CORE)))) -lm
LIBS_SERVER := $(call pkg,$(PKG_STATIC) --libs,$(PKGS_SERVER))
LIBS_TESTS := $(call pkg,--libs,$(PKGS_TESTS))

# No -Ofast and no -ffast-math: they turn isnan into 0, and masks are infinities.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wcast-qual -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wdouble-promotion -Wimplicit-fallthrough
MODE_FLAGS_release := -O3 -g -fstack-protector-strong
MODE_FLAGS_sanitize := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS_thread := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
# Two warnings crash gcc 12 without optimisation.
MODE_FLAGS_coverage := -O0 -g -fprofile-arcs -ftest-coverage -Wno-format-overflow -Wno-format-truncation
MODE_FLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS := $(MODE_FLAGS_$(MODE))
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

# Against overwritten stacks and stray jumps, as far as the compiler, its linker and the C library have it: what passes
# without a word is used. Debian's crt1.o has no note about return addresses and indirect jumps (CET), and without -z a
# program that is linked with it would have none either. Only a C library that was built for CET enforces the note.
HARDENING := -D_FORTIFY_SOURCE=3 -fstack-clash-protection $(if $(filter x86_64,$(ARCH)),-fcf-protection -Wl$(comma)-z$(comma)ibt$(comma)-z$(comma)shstk)
passes = $(if $(shell $(CC) -Werror -Wsystem-headers -O1 -fPIC -U_FORTIFY_SOURCE $(1) -include features.h \
         -nostdlib -shared -Wl,--fatal-warnings -x c /dev/null -o /dev/null 2>&1 || echo no),,$(1))
ifeq ($(MODE),release)
HARDENED := $(or $(call passes,$(HARDENING)),$(foreach flag,$(HARDENING),\
            $(or $(call passes,$(flag)),$(patsubst %=3,%=2,$(filter -D%,$(flag))))))
endif

OUR_CPPFLAGS := -Icore/include -D_GNU_SOURCE -DATTN_VERSION=\"$(VERSION)\" \
                $(if $(HARDENED),-U_FORTIFY_SOURCE $(filter -D%,$(HARDENED)))
OUR_CPPFLAGS += $(if $(filter gnutls,$(PKGS_SERVER)),-DHAVE_GNUTLS)
# Nobody puts functions of his own in place of ours at run time, so calls within a file may become inline.
# Where a product and a sum are one rounding, the source says so (fma in core/src/kernel/vector.inc.h): left to the compiler,
# the same sum would have other bits in another loop.
OUR_CFLAGS := -std=c17 -ffp-contract=off -fPIC -fno-semantic-interposition -pthread $(WARN) $(if $(filter 1,$(WERROR)),-Werror) $(MODE_FLAGS) \
              $(filter -f%,$(HARDENED))
OUR_LDFLAGS := -pthread $(MODE_FLAGS) -Wl,-z,relro,-z,now $(filter -Wl%,$(HARDENED))
COMPILE = $(CC) $(OUR_CPPFLAGS) $(CPPFLAGS_OF) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS_OF) $(CFLAGS)
LINK = $(CC) $(OUR_LDFLAGS)

# Kernels are the same source for another instruction set; the table in kernel.c chooses at start.
ifeq ($(ARCH),x86_64)
KERNEL_FLAGS_core/src/kernel/avx2.c := -mavx2 -mfma
KERNEL_FLAGS_core/src/kernel/avx512.c := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
endif
# It measures what the processor can do at most, by the compiler's own multiply-adds.
KERNEL_FLAGS_bench/machine.c := -ffp-contract=fast
# What is only run, and what computes most: the whole takes a third of the time.
TEST_FLAGS_in_coverage := -O1 -fno-profile-arcs -fno-test-coverage
CORE_FLAGS_in_coverage := -O1 -fno-early-inlining

CORE_SRC := $(sort $(shell find core/src -name '*.c'))
SERVER_SRC := $(sort $(shell find server -name '*.c'))
SUPPORT_SRC := $(wildcard tests/support/*.c)
BENCH_SRC := $(addprefix bench/,core_bench.c bench_case.c contender_attnd.c contender_plain.c machine.c)
JSON_BENCH_SRC := bench/json_bench.c
HTTP_BENCH_SRC := bench/http_load.c bench/http_floor.c
TEST_SRC := $(sort $(shell find tests -name 'test_*.c'))
LONG_SRC := $(wildcard tests/long/*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
SOURCES := $(CORE_SRC) $(SERVER_SRC) $(SUPPORT_SRC) $(TEST_SRC) $(LONG_SRC) $(FUZZ_SRC) tests/fuzz/fuzz.c \
           tests/fuzz/replay.c tests/fuzz/scan_lines.c $(BENCH_SRC) $(JSON_BENCH_SRC) $(HTTP_BENCH_SRC)
PUBLIC_HEADERS := $(wildcard core/include/attn/*.h)
HEADERS := $(PUBLIC_HEADERS) $(filter-out %.inc.h,$(sort $(shell find core/src server tests bench -name node_modules -prune -o -name '*.h' -print)))
# Functions whose names are macros (*.inc.h) are beyond clang-format.
FORMATTED := $(SOURCES) $(HEADERS) $(wildcard examples/*.c)

# Pages are bundled and compressed while building; the files named here embed what comes of it.
PAGE := $(BUILD)/server/web
DOCS := $(BUILD)/server/docs
sources_of_page = $(wildcard server/$(1)/*.js server/$(1)/*.css server/$(1)/*.html)
CPPFLAGS_server/http/pages.c := -DPAGE_FOLDER=\"$(PAGE)\" -DDOCS_FOLDER=\"$(DOCS)\" \
    -DOPENAPI_GZIP=\"$(BUILD)/server/openapi.json.gz\"

# The server sees the core's public headers alone; tests of the core may look inside it.
cppflags_of = $(CPPFLAGS_$(1)) $(if $(filter core/% $(BENCH_SRC),$(1)),-Icore/src $(CFLAGS_CORE),$(if $(filter tests/%,$(1)),-Iserver -Icore/src \
    -Itests -Itests/support $(CFLAGS_CORE) $(CFLAGS_SERVER) $(CFLAGS_TESTS),-Iserver $(CFLAGS_SERVER)))

# The references of tests widen to long double on purpose, which is a promotion to clang.
cflags_of = $(KERNEL_FLAGS_$(1)) $(if $(filter core/%,$(1)),$(CORE_FLAGS_in_$(MODE))) \
           $(if $(filter tests/%,$(1)),-Wno-double-promotion $(TEST_FLAGS_in_$(MODE)))

# nproc heeds what is meant for BLAS.
PROCESSORS = $(shell env -u OMP_NUM_THREADS nproc)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
CORE_OBJ := $(call obj,$(CORE_SRC))
SERVER_OBJ := $(call obj,$(filter-out server/main.c,$(SERVER_SRC)))
SUPPORT_OBJ := $(call obj,$(SUPPORT_SRC))
TEST_BIN := $(patsubst %.c,$(BUILD)/%,$(TEST_SRC))
# CHECK='pool sender' has `make check` run these alone.
CHECK_BIN := $(if $(CHECK),$(filter $(addprefix %/test_,$(CHECK)),$(TEST_BIN)),$(TEST_BIN))
REPLAY_BIN := $(patsubst %.c,$(BUILD)/%,$(FUZZ_SRC))
SHARED := $(BUILD)/libattn.so.$(VERSION)

QUICK_TESTS := check \
    replay \
    cases \
    layer-tests \
    protocol \
    ops \
    openapi \
    examples \
    install-test \
    packages-test \
    hardening \
    readme \
    vectors

# Every target that `make help` lists is the name of no file.
.PHONY: FORCE fuzz-programs $(QUICK_TESTS) $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))
.DELETE_ON_ERROR:

all: $(BUILD)/attnd $(BUILD)/libattn.a $(SHARED) ## build the server and the library (installs nothing)

# All processors, unless -j says how many.
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(PROCESSORS))

run: ## install what is missing, build, serve on 127.0.0.1:8080 (ATTND_LISTEN=address:port)
	$(Q)scripts/check_port.sh "$${ATTND_LISTEN:-127.0.0.1:8080}"
	$(Q)scripts/install_packages.sh $(RUN_PACKAGES)
	$(Q)[ -e $(BUILD)/attnd ] || echo "building: a minute or two of one processor"
	+$(Q)$(MAKE) --no-print-directory $(jobs) all
	$(Q)exec $(BUILD)/attnd

test: ## install what the tests need, run everything that is quick
	$(Q)scripts/install_packages.sh $(TEST_PACKAGES)
	$(Q)[ -e $(BUILD)/attnd ] || echo "building the server and its tests: some minutes of one processor"
	+$(Q)$(MAKE) --no-print-directory $(jobs) all $(TEST_BIN) $(REPLAY_BIN)
	+$(Q)python3 tests/run.py --suites '$(QUICK_TESTS)' $(MAKE) --no-print-directory -k $(QUICK_TESTS)

deps: ## install what building, running and testing take (apt-get, only when something is missing)
	$(Q)scripts/install_packages.sh $(TEST_PACKAGES)

# Written anew when the command changes, so that another compiler or another flag rebuilds.
$(BUILD)/command: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)$(PKG_CONFIG) --exists $(PKGS_SERVER) $(PKGS_CORE) 2>/dev/null || \
	    { echo "missing (by Debian's names): $$(scripts/missing_packages.sh $(RUN_PACKAGES)); on Debian 'make deps' installs them" >&2; exit 1; }
	$(Q)echo '$(subst ','\'',$(COMPILE) $(LINK) $(LDFLAGS))' | cmp -s - $@ || \
	    echo '$(subst ','\'',$(COMPILE) $(LINK) $(LDFLAGS))' > $@

$(BUILD)/%.o: CPPFLAGS_OF = $(call cppflags_of,$<)
$(BUILD)/%.o: CFLAGS_OF = $(call cflags_of,$<)
$(BUILD)/%.o: %.c $(BUILD)/command
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@

$(BUILD)/server/http/pages.o: server/openapi.json $(BUILD)/server/openapi.json.gz $(PAGE)/page.html.gz $(DOCS)/page.html.gz
$(BUILD)/server/codec/architecture.o: server/codec/checkpoint/architectures.json

$(BUILD)/server/openapi.json.gz: server/openapi.json
	$(Q)mkdir -p $(@D)
	$(Q)gzip -9nc $< > $@

$(PAGE)/page.html.gz: $(call sources_of_page,web) scripts/bundle_page.sh scripts/bundle_modules.awk
	$(Q)scripts/bundle_page.sh server/web $(PAGE)

$(DOCS)/page.html.gz: $(call sources_of_page,docs) scripts/bundle_page.sh scripts/bundle_modules.awk
	$(Q)scripts/bundle_page.sh server/docs $(DOCS)

$(BUILD)/libattn.a: $(CORE_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# What the public headers declare is exported, and nothing else.
$(BUILD)/libattn.map: $(PUBLIC_HEADERS) scripts/exported_symbols.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -f scripts/exported_symbols.awk $(PUBLIC_HEADERS) > $@

$(SHARED): $(CORE_OBJ) $(BUILD)/libattn.map
	$(Q)$(LINK) -shared -Wl,-soname,libattn.so.$(SOVERSION) -Wl,--version-script=$(BUILD)/libattn.map $(LDFLAGS) \
	    $(CORE_OBJ) $(LIBS_CORE) $(LDLIBS) -o $@

# Who links OpenBLAS's archive would take in the kernels for complex numbers too, which are half of OpenBLAS.
$(BUILD)/unused_kernels.c: scripts/unused_kernels.sh
	$(Q)mkdir -p $(@D)
	$(Q)NM='$(NM)' scripts/unused_kernels.sh "$$($(CC) $(filter -L%,$(LIBS_CORE)) -print-file-name=libopenblas.a)" > $@

$(BUILD)/unused_kernels.o: $(BUILD)/unused_kernels.c
	$(Q)$(COMPILE) -c $< -o $@

$(BUILD)/attnd: $(BUILD)/server/main.o $(SERVER_OBJ) $(if $(STATIC),$(BUILD)/unused_kernels.o) $(BUILD)/libattn.a
	$(Q)$(LINK) $(if $(PKG_STATIC),-static-pie -Wl$(comma)--gc-sections,-pie) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

# tests/support/failing_take.h takes these calls over.
TAKES_CAN_FAIL := $(addprefix -Wl$(comma)--wrap=attn_arena_,take take_zeroed copy_text create_within)
LDFLAGS_tests/unit/server/service/test_cut_short := $(TAKES_CAN_FAIL)
LDFLAGS_tests/unit/server/codec/bytes/test_stream := $(TAKES_CAN_FAIL)
LDFLAGS_tests/unit/server/http/test_at_once := -Wl,--wrap=attn_arena_set_limit -Wl,--wrap=attn_plan_run
LDFLAGS_tests/unit/server/codec/picture/test_picture_refusals := $(TAKES_CAN_FAIL) -Wl,--wrap=png_set_write_fn

$(TEST_BIN): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUPPORT_OBJ) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS_tests/$*) $(LDFLAGS) $^ $(LIBS_TESTS) $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/tests/long/numbers: $(addprefix $(BUILD)/,tests/long/numbers.o server/codec/number_read.o \
    server/codec/number_write.o server/codec/powers_of_ten.o)
	$(Q)$(LINK) $(LDFLAGS) $^ -lm $(LDLIBS) -o $@

numbers: $(BUILD)/tests/long/numbers ## write every float32 and read it back (a minute or two)
	$(Q)$<

$(BUILD)/bench/core_bench: $(call obj,$(BENCH_SRC)) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/bench/json_bench: $(call obj,$(JSON_BENCH_SRC)) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/tests/long/accuracy: $(addprefix $(BUILD)/,tests/long/accuracy.o tests/support/random.o libattn.a)
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

accuracy: $(BUILD)/tests/long/accuracy ## float32 against float64, the worst of many inputs; writes docs/accuracy.md
	$(Q)$< docs/accuracy.md

bench: bench-json $(BUILD)/bench/core_bench ## measure beside plain OpenBLAS, the machine, peers (BENCH='--quick --only RE')
	$(Q)python3 bench/run.py --program $(BUILD)/bench/core_bench --json build/bench.json $(BENCH)

bench-json: $(BUILD)/bench/json_bench ## reading and writing numbers beside jansson, Node's JSON, Python's json
	$(Q)python3 bench/json_text.py --program $<

$(BUILD)/bench/http_load $(BUILD)/bench/http_floor: $(BUILD)/bench/%: $(BUILD)/bench/%.o
	$(Q)$(LINK) $(LDFLAGS) $< $(if $(filter %floor.o,$<),$(call pkg,--libs,libmicrohttpd)) $(LDLIBS) -o $@

bench-http: $(BUILD)/attnd $(BUILD)/bench/http_load $(BUILD)/bench/http_floor ## HTTP by each format, beside a bare echo and peers (BENCH='--quick --only tiny')
	$(Q)python3 bench/wire.py --attnd $< --bin $(BUILD)/bench --json build/bench-http.json $(BENCH)

bench-replicas: $(BUILD)/attnd ## throughput of one and two servers behind HAProxy (docs/scaling.md; a quiet machine)
	$(Q)python3 bench/replicas.py --attnd $(BUILD)/attnd

bench-peers: ## fetch the peers of `make bench`: onnxruntime-node by npm (PyTorch: apt-get install python3-torch)
	$(Q)cd bench/peers && npm install --ignore-scripts --no-package-lock --no-audit --no-fund

# BLAS gets one thread because check forks; busy machines and instrumented code get twenty times check's time.
check: $(CHECK_BIN) ## build and run the unit tests (CHECK='pool sender' for some of them)
	$(Q)OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 CK_TIMEOUT_MULTIPLIER=20 \
	    python3 tests/check.py --jobs $(PROCESSORS) $(CHECK_BIN)

# Make knows no "skipped": a suite that was skipped as a whole ends with 77, and its last line counts it.
OR_SKIPPED := || [ $$? -eq 77 ]

cases: $(BUILD)/attnd ## end-to-end: post tests/cases to a server and compare the answers
	$(Q)python3 tests/cases/run.py --attnd $(BUILD)/attnd
	$(Q)python3 tests/formats/run.py --attnd $(BUILD)/attnd

layer-tests: $(BUILD)/attnd ## kept layers end to end, with kills, full disks and power cuts (KILLS=20)
	$(Q)python3 tests/layers/run.py --attnd $(BUILD)/attnd --kills $(KILLS)

protocol: $(BUILD)/attnd ## hold a server against the Open Inference Protocol
	$(Q)python3 tests/protocol/run.py --attnd $(BUILD)/attnd

ops: $(BUILD)/attnd ## hold a server against what operating it relies on: metrics, keys, certificates, signals, deadlines
	$(Q)python3 tests/ops/run.py --attnd $(BUILD)/attnd

load-memory: $(BUILD)/attnd ## mixes of clients in a control group of 256 MiB; skipped without root
	$(Q)python3 tests/load/memory.py --attnd $(BUILD)/attnd $(OR_SKIPPED)

overload: $(BUILD)/attnd $(BUILD)/bench/http_load ## measure goodput at ten times the load, waits beside slow clients, how soon work of who left ends (a quiet machine)
	$(Q)python3 tests/load/overload.py --attnd $(BUILD)/attnd --load $(BUILD)/bench/http_load
	$(Q)python3 tests/load/slow_crowd.py --attnd $(BUILD)/attnd
	$(Q)python3 tests/load/client_gone.py --attnd $(BUILD)/attnd

openapi: $(BUILD)/attnd ## hold server/openapi.json against itself, the sources and a server
	$(Q)python3 tests/openapi/run.py --attnd $(BUILD)/attnd

install-test: all ## install below a folder of the test's own, move it, and look whether all is there and true
	$(Q)MAKE='$(MAKE)' CC='$(CC)' MODE='$(MODE)' BUILD='$(BUILD)' PKG_CONFIG='$(PKG_CONFIG)' tests/install.sh

packages-test: ## what make says where packages are missing, and where they cannot be installed
	$(Q)tests/packages.sh

hardening: all ## what the program and the library have against overwritten stacks and stray jumps
	$(Q)BUILD='$(BUILD)' MODE='$(MODE)' ARCH='$(ARCH)' HARDENED='$(HARDENED)' tests/hardening.sh $(OR_SKIPPED)

examples: all ## run the programs of examples/, the C one against an installed library
	$(Q)MAKE='$(MAKE)' CC='$(CC)' MODE='$(MODE)' BUILD='$(BUILD)' python3 tests/examples/run.py --attnd $(BUILD)/attnd

readme: $(BUILD)/attnd ## run the commands of README.md and compare what they print
	$(Q)python3 tests/readme/run.py --attnd $(BUILD)/attnd README.md

vectors: $(BUILD)/attnd ## compare with ONNX and PyTorch (test data in ../shared or ATTN_SHARED; skipped without)
	$(Q)python3 tests/vectors/run.py --attnd $(BUILD)/attnd --quiet $(OR_SKIPPED)

conformance: $(BUILD)/attnd ## the same, and write docs/conformance.md from what came of it
	$(Q)python3 tests/vectors/run.py --attnd $(BUILD)/attnd --quiet --report docs/conformance.md

test-page: $(BUILD)/attnd ## try the page in Debian's chromium, installed when missing (PAGE_TESTS='--only WORD')
	$(Q)tests/web/run.sh $(BUILD)/attnd $(PAGE_TESTS) $(OR_SKIPPED)

KILLS ?= 20
SECONDS ?= 60
fuzz: $(BUILD)/attnd ## compare random requests with a plain reference (SECONDS=60)
	$(Q)python3 tests/fuzz/differential.py --attnd $(BUILD)/attnd --seconds $(SECONDS)

# The same targets twice: linked with libFuzzer in MODE=fuzz, with a driver that replays what is kept in every other.
$(REPLAY_BIN): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/fuzz.o \
    $(if $(filter fuzz,$(MODE)),,$(BUILD)/tests/fuzz/replay.o) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/tests/fuzz/scan_lines: $(BUILD)/tests/fuzz/scan_lines.o $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

replay: $(REPLAY_BIN) $(BUILD)/tests/fuzz/scan_lines ## what fuzzing keeps in tests/fuzz/corpus; the scanner beside Python's json
	$(Q)tests/fuzz/replay.sh $(REPLAY_BIN)
	$(Q)python3 tests/fuzz/scanner.py $(BUILD)/tests/fuzz/scan_lines
	$(Q)python3 tests/fuzz/members.py

# As many seconds for each target: 10, unless the command line says SECONDS=60.
fuzz-targets: ## new inputs for the fuzz targets, by clang's libFuzzer with sanitizers (SECONDS=10 for each of them)
	+$(Q)$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-programs
	$(Q)tests/fuzz/run.sh $(if $(filter command,$(firstword $(origin SECONDS))),$(SECONDS),10) \
	    $(patsubst %.c,build/fuzz/%,$(FUZZ_SRC))

fuzz-programs: $(REPLAY_BIN)


$(BUILD)/tests/fault/shim.so: tests/fault/shim.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(WARN) $(if $(filter 1,$(WERROR)),-Werror) -O1 -fPIC -shared $< -ldl -o $@

torture: $(BUILD)/attnd $(BUILD)/tests/fault/shim.so ## every call of the start and of every endpoint failed in turn (SECONDS=45 each: a sample)
	$(Q)python3 tests/fault/start.py --attnd $< --shim $(BUILD)/tests/fault/shim.so $(asked_seconds)
	$(Q)python3 tests/fault/torture.py --attnd $< --shim $(BUILD)/tests/fault/shim.so $(asked_seconds) $(TORTURE)

chaos: $(BUILD)/attnd ## a network that cuts, delays and splits (SECONDS=20)
	$(Q)python3 tests/fault/chaos.py --attnd $< $(asked_seconds)

soak: $(BUILD)/attnd ## mixed traffic, bad clients, reloads, restarts; memory, descriptors, wrong answers (MINUTES=5)
	$(Q)python3 tests/soak.py --attnd $< $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK)

asked_seconds = $(if $(filter command,$(firstword $(origin SECONDS))),--seconds $(SECONDS))

.PHONY: torture chaos soak

headers: ## every header compiles on its own
	$(Q)for h in $(HEADERS); do echo "#include \"$$h\"" | $(COMPILE) -I. -Iserver -Icore/src -Itests -Itests/support $(CFLAGS_SERVER) \
	    -fsyntax-only -x c - || { echo "$$h does not compile on its own" >&2; exit 1; }; done
	@echo "headers: $(words $(HEADERS)) compile on their own"

layers: ## includes point one way, each library has one home, no two sources share a name
	$(Q)scripts/check_layers.sh
	$(Q)scripts/check_version.sh

compile_commands.json: Makefile $(SOURCES)
	$(file >$@,[)
	$(foreach f,$(SOURCES),$(file >>$@,$(compile_entry)))
	$(file >>$@,])
compile_entry = $(if $(filter $(f),$(firstword $(SOURCES))),,$(comma)){"directory": "$(CURDIR)"$(comma) "file": "$f"$(comma) \
    "command": "$(subst ",\",$(subst \,\\,$(call command_for,$(f)))) -c $f"}
command_for = $(CC) $(OUR_CPPFLAGS) $(call cppflags_of,$(1)) $(CPPFLAGS) $(OUR_CFLAGS) $(call cflags_of,$(1)) $(CFLAGS)

tidy: compile_commands.json ## clang-tidy over the core and the server
	$(Q)printf '%s\n' $(CORE_SRC) $(SERVER_SRC) | xargs -P $(PROCESSORS) -n 1 clang-tidy --quiet --warnings-as-errors='*' -p .

format: ## lay out all sources as .clang-format says
	$(Q)clang-format -i $(FORMATTED)

format-check: ## complain about sources that `make format` would change
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

# Built without optimisation, so that a branch is one of the source.
COVERED_TESTS := check replay cases protocol layer-tests ops openapi vectors torture
COVERAGE := build/coverage/gcovr.json
TORTURED_SECONDS ?= 100
coverage: ## lines and branches that the tests execute, by file and folder, and which they do not (build/coverage/uncovered.txt)
	$(Q)scripts/install_packages.sh $(TEST_PACKAGES) gcovr
	+$(Q)$(MAKE) --no-print-directory MODE=coverage all
	$(Q)find build/coverage -name '*.gcda' -delete
	+$(Q)$(MAKE) --no-print-directory -k MODE=coverage SECONDS=$(TORTURED_SECONDS) $(COVERED_TESTS)
	$(Q)gcovr --root . --filter core/ --filter server/ --exclude-unreachable-branches --json $(COVERAGE) \
	    --exclude-branches-by-pattern '.*\bassert\(.*' build/coverage
	$(Q)scripts/coverage.py $(COVERAGE) --document tests/coverage.md

# The manual page and the completion are made from the settings' own table, as --help prints it. Programs find a library in
# one of the system's own folders once ldconfig has seen it.
settings = said=$$($(EMULATOR) $(BUILD)/attnd --help) && printf '%s\n' "$$said" | awk -f packaging/settings.awk
install: all ## install server, library, headers, attn.pc, manual pages, completion, systemd unit (PREFIX, LIBDIR, DESTDIR)
	$(Q)install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(PREFIX)/include/attn" \
	    "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(MANDIR)/man3" "$(DESTDIR)$(COMPLETIONDIR)" "$(DESTDIR)$(UNITDIR)"
	$(Q)install -m 755 $(BUILD)/attnd "$(DESTDIR)$(PREFIX)/bin/attnd"
	$(Q)install -m 644 $(PUBLIC_HEADERS) "$(DESTDIR)$(PREFIX)/include/attn/"
	$(Q)install -m 644 $(BUILD)/libattn.a "$(DESTDIR)$(LIBDIR)/libattn.a"
	$(Q)install -m 755 $(SHARED) "$(DESTDIR)$(LIBDIR)/libattn.so.$(VERSION)"
	$(Q)ln -sf libattn.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libattn.so.$(SOVERSION)"
	$(Q)ln -sf libattn.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libattn.so"
	$(Q)up=$$(realpath -m --relative-to="$(LIBDIR)/pkgconfig" "$(PREFIX)") && \
	    lib=$$(realpath -m --relative-to="$(PREFIX)" "$(LIBDIR)") && \
	    sed -e "s|@PREFIX@|\$${pcfiledir}/$$up|" -e "s|@LIBDIR@|\$${prefix}/$$lib|" -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@LIBS_PRIVATE@|$(strip $(LIBS_CORE))|' \
	    core/attn.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/attn.pc"
	$(Q)$(settings) -v FORM=man | sed -e 's|@VERSION@|$(VERSION)|' -e '/^@SETTINGS@$$/{r /dev/stdin' -e 'd;}' \
	    packaging/attnd.1.in > "$(DESTDIR)$(MANDIR)/man1/attnd.1"
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' packaging/libattn.3.in > "$(DESTDIR)$(MANDIR)/man3/libattn.3"
	$(Q)$(settings) -v FORM=values | sed -e "s|@SETTINGS@|$$($(settings) -v FORM=words)|" \
	    -e '/^@VALUES@$$/{r /dev/stdin' -e 'd;}' packaging/attnd.bash.in > "$(DESTDIR)$(COMPLETIONDIR)/attnd"
	$(Q)sed -e "s|@BINDIR@|$$(echo '$(PREFIX)/bin' | sed 's/ /\\\\x20/g')|" packaging/attnd.service.in \
	    > "$(DESTDIR)$(UNITDIR)/attnd.service"
	$(Q)case '$(DESTDIR),$(LIBDIR)' in ,/usr/*) [ "$$(id -u)" != 0 ] || ldconfig ;; esac

TARBALL := build/attnd-$(VERSION).tar.gz
in_a_clone = [ -e .git ] || { echo "$@: the tarball is made of a commit, so it takes a clone by git" >&2; exit 1; }
dist: ## build/attnd-VERSION.tar.gz: the sources of the last commit, the same bytes every time
	$(Q)$(in_a_clone)
	$(Q)mkdir -p build
	$(Q)git archive --prefix=attnd-$(VERSION)/ -o $(TARBALL:.gz=) HEAD
	$(Q)gzip -9nf $(TARBALL:.gz=)
	@echo $(TARBALL)

deb: ## Debian packages in build/deb: attnd, libattn0, libattn-dev (DEB_BUILD_OPTIONS=nocheck leaves out the tests)
	$(Q)$(in_a_clone)
	$(Q)scripts/install_packages.sh $(TEST_PACKAGES) build-essential debhelper dpkg-dev git
	+$(Q)$(MAKE) --no-print-directory dist
	$(Q)VERSION='$(VERSION)' TARBALL='$(TARBALL)' packaging/deb.sh $(RUN_PACKAGES)

image: ## container images by docker, podman or buildah (docker/image.sh says what can be set)
	$(Q)docker/image.sh minimal full

image-test: ## build the images, run them and check them from outside; then the balancer with three replicas
	$(Q)tests/image.sh $(OR_SKIPPED)
	$(Q)tests/compose.sh $(OR_SKIPPED)
	$(Q)tests/pod.sh $(OR_SKIPPED)
	$(Q)tests/manifests/run.sh $(OR_SKIPPED)

fresh: ## the README on bare machines, Debian 12 and 13 (root; takes minutes)
	$(Q)tests/fresh.sh bookworm
	$(Q)tests/fresh.sh trixie

clean: ## remove everything that was built
	$(Q)rm -rf build compile_commands.json

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

-include $(patsubst %.c,$(BUILD)/%.d,$(SOURCES))
