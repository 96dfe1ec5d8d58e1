# tests.mk: the test programs and suites. tests/README.md says what each claims and how to run one.
#
# Each suite ends with a line "NAME: N passed, N failed, N skipped" (tests/support/suite.py, checks.sh).

SUPPORT_SRC := $(wildcard tests/support/*/*.c)
TEST_SRC := $(sort $(shell find tests -name 'test_*.c' 2>/dev/null))
# Programs that take minutes.
LONG_SRC := tests/unit/core/accuracy.c tests/unit/server/codec/number/numbers.c
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
SOURCES += $(CORE_SRC) $(SERVER_SRC) $(SUPPORT_SRC) $(TEST_SRC) $(LONG_SRC) $(FUZZ_SRC) tests/fuzz/fuzz.c \
           tests/fuzz/replay.c tests/fuzz/scan_lines.c
# The shared code of core tests must not depend on the server.
SUPPORT_OBJ := $(call obj,$(SUPPORT_SRC))
CORE_SUPPORT_OBJ := $(filter $(BUILD)/tests/support/core/%,$(SUPPORT_OBJ))
TEST_BIN := $(patsubst %.c,$(BUILD)/%,$(TEST_SRC))
CORE_TEST_BIN := $(filter $(BUILD)/tests/unit/core/%,$(TEST_BIN))
REPLAY_BIN := $(patsubst %.c,$(BUILD)/%,$(FUZZ_SRC))
# CHECK='pool sender': `make check` runs only these.
unknown_checks := $(foreach word,$(CHECK),$(if $(filter %/test_$(word),$(TEST_BIN)),,$(word)))
$(if $(strip $(unknown_checks)),$(error CHECK names no unit test: $(strip $(unknown_checks))))
CHECK_BIN := $(if $(CHECK),$(filter $(addprefix %/test_,$(CHECK)),$(TEST_BIN)),$(TEST_BIN))

# The longest come first, because several run at a time.
SUITES := check ops layer-tests openapi replay cases words model-tests protocol examples install-test hardening readme vectors models
# What these five hold changes seldom: `make nightly` runs them.
SELDOM := kernels demo-model small-model packages-test bench-check
.PHONY: $(SUITES) $(SELDOM) fuzz-programs built-for-tests

# Make has no state "skipped". A suite that is skipped as a whole ends with 77, and its last line counts the skip.
OR_SKIPPED := || [ $$? -eq 77 ]

# `make -n` runs recipes that contain $(MAKE). Suites that call make get its name by this variable, so `make -n` runs none.
make_itself = $(MAKE)
dry_run = $(findstring n,$(firstword -$(MAKEFLAGS)))

##@ Tests

test: ## install what the tests need, run everything that is quick
	$(Q)mk/install_packages.sh $(TEST_PACKAGES)
	$(call build,built-for-tests)
	+$(Q)$(if $(dry_run),,python3 tests/support/run_suites.py --suites '$(SUITES)') $(MAKE) --no-print-directory $(suite_jobs) -k $(SUITES)
# One suite more than there are processors, because servers that start and end are waited for.
suite_jobs = $(if $(jobs),-j$(shell echo $$(($(PROCESSORS) + 1))))

# With the programs that no test runs, so that they go on compiling.
built-for-tests: all $(TEST_BIN) $(REPLAY_BIN) $(addprefix $(BUILD)/,$(addprefix bench/,core_bench json_bench http/http_load http/http_floor) \
    tests/fuzz/scan_lines tests/unit/core/accuracy tests/unit/server/codec/number/numbers)
	@:

# tests/support/server/failing_take.h replaces these calls.
TAKES_CAN_FAIL := $(addprefix -Wl$(comma)--wrap=attn_arena_,take take_zeroed copy_text create_within)
LDFLAGS_test_cut_short := $(TAKES_CAN_FAIL)
LDFLAGS_test_model_run := $(TAKES_CAN_FAIL)
LDFLAGS_test_audio_run := $(TAKES_CAN_FAIL)
LDFLAGS_test_generate := $(TAKES_CAN_FAIL)
LDFLAGS_test_gradients_run := $(TAKES_CAN_FAIL)
LDFLAGS_test_model_request := $(TAKES_CAN_FAIL)
LDFLAGS_test_stream := $(TAKES_CAN_FAIL)
LDFLAGS_test_at_once := $(addprefix -Wl$(comma)--wrap=,at_once_suffices compute_answer attn_plan_run)
LDFLAGS_test_picture_refusals := $(TAKES_CAN_FAIL) -Wl,--wrap=png_set_write_fn

$(CORE_TEST_BIN): %: %.o $(CORE_SUPPORT_OBJ) $(BUILD)/libattn.a
	$(Q)$(call step,linking $@)$(LINK) $(LDFLAGS_$(@F)) $(LDFLAGS) $^ $(LIBS_TESTS) $(LIBS_CORE) $(LDLIBS) -o $@

$(filter-out $(CORE_TEST_BIN),$(TEST_BIN)): %: %.o $(SUPPORT_OBJ) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(call step,linking $@)$(LINK) $(LDFLAGS_$(@F)) $(LDFLAGS) $^ $(LIBS_TESTS) $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

# Random requests with all that the reference computes of them.
VECTORS := build/vectors
CPPFLAGS_tests/unit/server/codec/request/test_vectors.c := -DVECTORS=\"$(VECTORS)\"
$(BUILD)/tests/unit/server/codec/request/test_vectors: | $(VECTORS)
$(VECTORS): $(wildcard tests/fuzz/*.py tests/support/reference/*.py) tests/support/tensors.py
	$(Q)$(call step,writing $@)mkdir -p $(@D) && python3 tests/fuzz/vectors.py $@

# BLAS gets one thread because check forks; busy machines and instrumented code get twenty times check's time.
run_units = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 CK_TIMEOUT_MULTIPLIER=20 \
            python3 tests/support/run_units.py --jobs $$(($(PROCESSORS) + 1))
# The longest ones begin, so that all processors are busy until the end. test_sender mostly waits.
CHECK_FIRST = $(filter %/test_sender %/test_tokenizer %/test_backward %/test_model_run,$(CHECK_BIN))
check: $(CHECK_BIN) ## build and run the unit tests (CHECK='pool sender' for some of them)
	$(Q)$(run_units) $(CHECK_FIRST) $(filter-out $(CHECK_FIRST),$(CHECK_BIN))

# The tests of core and codec, except the longest.
LONG_TESTS := backward determinism feature_maps distance_bias layer properties norm_dropout gemm
QUICK_BIN := $(filter-out $(addprefix %/test_,$(LONG_TESTS)),$(CORE_TEST_BIN) $(filter $(BUILD)/tests/unit/server/codec/%,$(TEST_BIN)))
quick: $(QUICK_BIN) $(BUILD)/attnd ## the tests of half a minute: most unit tests of core and codec, and the cases
	$(Q)$(run_units) $(QUICK_BIN)
	$(Q)python3 tests/api/cases/run.py --attnd $(BUILD)/attnd

cases: $(BUILD)/attnd ## end-to-end: post tests/api/cases to a server and compare the answers
	$(Q)python3 tests/api/cases/run.py --attnd $(BUILD)/attnd
	$(Q)python3 tests/api/formats/run.py --attnd $(BUILD)/attnd

words: $(BUILD)/attnd ## hold a server against the habits of its users: short forms, words of other systems, usual mistakes
	$(Q)python3 tests/api/words/run.py --attnd $(BUILD)/attnd

KILLS ?= 20
layer-tests: $(BUILD)/attnd ## kept layers end to end, with kills, full disks and power cuts (KILLS=20)
	$(Q)python3 tests/api/layers/run.py --attnd $(BUILD)/attnd --kills $(KILLS)

REWRITES ?= 8
model-tests: $(BUILD)/attnd ## whole models end to end, against what transformers recorded; files are rewritten under load (REWRITES=8)
	$(Q)python3 tests/api/models/run.py --attnd $(BUILD)/attnd --rewrites $(REWRITES)

protocol: $(BUILD)/attnd ## hold a server against the Open Inference Protocol
	$(Q)python3 tests/api/protocol/run.py --attnd $(BUILD)/attnd

ops: $(BUILD)/attnd ## hold a server against what operating it relies on: metrics, keys, certificates, signals, deadlines
	$(Q)python3 tests/api/ops/run.py --attnd $(BUILD)/attnd

openapi: $(BUILD)/attnd ## hold the OpenAPI document against itself, the sources and a server
	$(Q)python3 tests/api/openapi/run.py --attnd $(BUILD)/attnd

openapi-clients: $(BUILD)/attnd ## generate clients from the OpenAPI document, compile them and compute with each (npm)
	$(Q)tests/others/generators/run.sh $(BUILD)/attnd $(OR_SKIPPED)

readme: $(BUILD)/attnd ## run the commands of README.md, docs/ and the tutorial, and compare what they print
	$(Q)for page in README.md docs/requests.md docs/models.md docs/questions.md docs/small_model.md; do python3 tests/api/readme/run.py --attnd $(BUILD)/attnd $$page || exit 1; done
	$(Q)python3 tests/api/readme/tutorial.py --attnd $(BUILD)/attnd
	$(Q)tests/api/readme/links.py

examples: all ## run the programs of examples/, the C one against an installed library
	$(Q)MAKE='$(make_itself)' CC='$(CC)' MODE='$(MODE)' BUILD='$(BUILD)' python3 tests/others/examples/run.py --attnd $(BUILD)/attnd

vectors: $(BUILD)/attnd ## compare with ONNX and PyTorch (test data in ATTN_SHARED; skipped without)
	$(Q)python3 tests/others/vectors/run.py --attnd $(BUILD)/attnd --quiet $(OR_SKIPPED)

conformance: $(BUILD)/attnd ## run vectors and models, and write the results to docs/conformance.md
	$(Q)python3 tests/others/vectors/run.py --attnd $(BUILD)/attnd --quiet --report docs/conformance.md
	$(Q)python3 tests/others/models/run.py --attnd $(BUILD)/attnd --report docs/conformance.md

demo-model: ## score the trained model of examples/train_demo on held-out sentences (NumPy; no server)
	$(Q)python3 tests/others/demo_model/run.py $(OR_SKIPPED)

small-model: ## score the trained model of examples/train_small on unseen rows (NumPy, python3-regex; no server)
	$(Q)python3 tests/others/small_model/run.py $(OR_SKIPPED)

models: $(BUILD)/attnd ## whole models against recorded tokens, maps, states and logits (more of them in ATTN_SHARED)
	$(Q)python3 tests/others/models/run.py --attnd $(BUILD)/attnd

install-test: all ## install below a folder of the test's own, move it, and look whether all is there and true
	$(Q)MAKE='$(make_itself)' CC='$(CC)' MODE='$(MODE)' BUILD='$(BUILD)' PKG_CONFIG='$(PKG_CONFIG)' tests/machines/install.sh

kernels: $(BUILD)/attnd ## programs with few kernels (KERNELS=native) answer as one with all, byte by byte
	$(Q)MAKE='$(make_itself)' CC='$(CC)' MODE='$(MODE)' python3 tests/machines/kernels.py --attnd $(BUILD)/attnd

packages-test: ## what make says where packages are missing, and where they cannot be installed
	$(Q)tests/machines/packages.sh

hardening: all ## what the program and the library have against overwritten stacks and stray jumps
	$(Q)BUILD='$(BUILD)' MODE='$(MODE)' ARCH='$(ARCH)' HARDENED='$(HARDENED)' tests/machines/hardening.sh $(OR_SKIPPED)

FUZZING_ENGINE := -fsanitize=fuzzer
# Each fuzz target links with libFuzzer in MODE=fuzz, and in other modes with a driver that replays the corpus.
$(REPLAY_BIN): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/fuzz.o \
    $(if $(filter fuzz,$(MODE)),,$(BUILD)/tests/fuzz/replay.o) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(call step,linking $@)$(LINK) $(if $(filter fuzz,$(MODE)),$(FUZZING_ENGINE)) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/tests/fuzz/scan_lines: $(BUILD)/tests/fuzz/scan_lines.o $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

replay: $(REPLAY_BIN) $(BUILD)/tests/fuzz/scan_lines ## what fuzzing keeps in tests/fuzz/corpus; the scanner beside Python's json
	$(Q)tests/fuzz/replay.sh $(REPLAY_BIN)
	$(Q)python3 tests/fuzz/scanner.py $(BUILD)/tests/fuzz/scan_lines
	$(Q)python3 tests/fuzz/members.py --document $(BUILD)/server/openapi.json

##@ Longer tests

nightly: ## install what they need, run the checks that .ci/run leaves out: one line a step (ONLY='threads|tidy' for some of them)
	+$(Q)$(if $(dry_run),,mk/nightly.sh '$(ONLY)')

test-page: $(BUILD)/attnd ## try the page in Debian's chromium, installed when missing (PAGE_TESTS='--only WORD')
	$(Q)tests/page/run.sh $(BUILD)/attnd $(PAGE_TESTS) $(OR_SKIPPED)

test-firefox: $(BUILD)/attnd ## try the page in Debian's firefox-esr, installed when missing
	$(Q)tests/page/firefox/run.sh $(BUILD)/attnd $(OR_SKIPPED)

clients: $(BUILD)/attnd ## try clients/js and clients/python against a server (npm's packages, NumPy, chromium)
	$(Q)python3 tests/clients/run.py --attnd $(BUILD)/attnd

client-types: $(BUILD)/attnd ## make the types of requests in clients/js and clients/python from the server's /openapi.json
	$(Q)python3 tests/clients/renew_types.py --attnd $(BUILD)/attnd

load-memory: $(BUILD)/attnd ## mixes of clients in a control group of 256 MiB; skipped without root
	$(Q)python3 tests/faults/memory.py --attnd $(BUILD)/attnd $(OR_SKIPPED)

fuzz: $(BUILD)/attnd ## compare random requests with a plain reference (FUZZ_SECONDS=60)
	$(Q)python3 tests/fuzz/differential.py --attnd $(BUILD)/attnd --seconds $(or $(FUZZ_SECONDS),60)

fuzz-targets: ## new inputs for the fuzz targets, by clang's libFuzzer with sanitizers (FUZZ_SECONDS=10 for each of them)
	+$(Q)$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-programs
	$(Q)tests/fuzz/run.sh $(or $(FUZZ_SECONDS),10) $(patsubst %.c,build/fuzz/%,$(FUZZ_SRC))

fuzz-programs: $(REPLAY_BIN)

$(BUILD)/tests/faults/shim.so: tests/faults/shim.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(WARN) $(if $(filter 1,$(WERROR)),-Werror) -O1 -fPIC -shared $< -ldl -o $@

torture_seconds = $(if $(TORTURE_SECONDS),--seconds $(TORTURE_SECONDS))
torture: $(BUILD)/attnd $(BUILD)/tests/faults/shim.so ## every call of the start and of every endpoint failed in turn (TORTURE_SECONDS=45 each: a sample)
	$(Q)python3 tests/faults/start.py --attnd $< --shim $(BUILD)/tests/faults/shim.so $(torture_seconds)
	$(Q)python3 tests/faults/torture.py --attnd $< --shim $(BUILD)/tests/faults/shim.so $(torture_seconds) $(TORTURE)

chaos: $(BUILD)/attnd ## a network that cuts, delays and splits (TORTURE_SECONDS=20)
	$(Q)python3 tests/faults/chaos.py --attnd $< $(torture_seconds)

soak: $(BUILD)/attnd ## mixed traffic, bad clients, reloads, restarts; memory, descriptors, wrong answers (MINUTES=5)
	$(Q)python3 tests/faults/soak.py --attnd $< $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK)

$(BUILD)/tests/unit/server/codec/number/numbers: $(call obj,tests/unit/server/codec/number/numbers.c $(addprefix server/codec/number/,read.c write.c))
	$(Q)$(LINK) $(LDFLAGS) $^ -lm $(LDLIBS) -o $@

numbers: $(BUILD)/tests/unit/server/codec/number/numbers ## write every float32 and read it back (a minute or two)
	$(Q)$<
