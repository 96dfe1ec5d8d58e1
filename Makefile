# attnd: attention as a service. `make help` lists what can be made; everything is built under build/$(MODE).

MODE ?= release
V ?= 0
VERSION := $(shell cat VERSION)
BUILD := build/$(MODE)
Q := $(if $(filter 1,$(V)),,@)

PKGS_SERVER := libmicrohttpd jansson
PKGS_CORE := openblas
PKGS_TESTS := check
pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wcast-qual -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wdouble-promotion -Wimplicit-fallthrough
MODE_FLAGS_release := -O3 -g
MODE_FLAGS_sanitize := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS_thread := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
MODE_FLAGS_coverage := -O0 -g --coverage
MODE_FLAGS := $(MODE_FLAGS_$(MODE))

OUR_CPPFLAGS := -Icore/include -Icore/src -Iserver -D_GNU_SOURCE -DATTN_VERSION='"$(VERSION)"'
OUR_CFLAGS := -std=c17 -fPIC -pthread $(WARN) $(if $(WERROR),-Werror) $(MODE_FLAGS) -MMD -MP
OUR_LDFLAGS := -pthread $(MODE_FLAGS)

# Kernels are the same source for another instruction set; the table in kernel.c chooses at start.
ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)
ifeq ($(ARCH),x86_64)
KERNEL_FLAGS_avx2 := -mavx2 -mfma -ffp-contract=fast
KERNEL_FLAGS_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512 -ffp-contract=fast
endif
KERNEL_FLAGS_portable := -ffp-contract=fast

CORE_SRC := $(wildcard core/src/*.c core/src/kernel/*.c)
SERVER_SRC := $(wildcard server/*.c server/http/*.c server/service/*.c server/codec/*.c)
SUPPORT_SRC := $(wildcard tests/support/*.c)
TEST_SRC := $(wildcard tests/core/test_*.c tests/codec/test_*.c tests/service/test_*.c tests/http/test_*.c)
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
CORE_OBJ := $(call obj,$(CORE_SRC))
SERVER_OBJ := $(call obj,$(filter-out server/main.c,$(SERVER_SRC)))
TEST_BIN := $(patsubst %.c,$(BUILD)/%,$(TEST_SRC))

.PHONY: all check clean help
all: $(BUILD)/attnd $(BUILD)/libattn.a ## build the server and the library

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CPPFLAGS) $(CPPFLAGS) $(call pkg,--cflags,$(PKGS_CORE) $(PKGS_SERVER) $(PKGS_TESTS)) $(OUR_CFLAGS) $(KERNEL_FLAGS_$(basename $(notdir $<))) $(CFLAGS) -c $< -o $@

$(BUILD)/libattn.a: $(CORE_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/attnd: $(BUILD)/server/main.o $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) $^ $(call pkg,--libs,$(PKGS_SERVER) $(PKGS_CORE)) -lm $(LDLIBS) -o $@

$(TEST_BIN): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(call obj,$(SUPPORT_SRC)) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) $^ $(call pkg,--libs,$(PKGS_TESTS) $(PKGS_SERVER) $(PKGS_CORE)) -lm $(LDLIBS) -o $@

check: $(TEST_BIN) ## build and run the unit tests
	$(Q)for t in $(TEST_BIN); do OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $$t || exit 1; done

clean: ## remove everything that was built
	$(Q)rm -rf build

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(patsubst %.c,$(BUILD)/%.d,$(CORE_SRC) $(SERVER_SRC) $(SUPPORT_SRC) $(TEST_SRC))
