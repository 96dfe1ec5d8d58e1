# attnd: attention as a service. `make help` lists the targets; all files are built under build/$(MODE).
#
#   MODE=release|sanitize|thread|coverage   what to build      WERROR=1   warnings are errors
#   V=1                                     show commands      CFLAGS, LDFLAGS, CC … are yours and come last
#   STATIC=1    a server that needs no shared library (its libmicrohttpd must have no TLS)
#   STATIC=blas a server with OpenBLAS linked in, without its kernels for complex numbers (half of its size)
#   KERNELS=all|native  kernels of every processor, or of this one and the portable one (the default of make run)
#   INSTALL=no  name the missing packages and stop, instead of installing them

.DEFAULT_GOAL := all
MODE ?= release
BUILD ?= build/$(MODE)
Q := $(if $(filter 1,$(V)),,@)
VERSION := $(shell cat VERSION)
# What may break programs that are linked: before 1.0 a minor version, later a major one.
SOVERSION := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))

include mk/packages.mk
include mk/compile.mk

# The kernels take the compiler longest, so they come first, and each of their sources gives four objects (parts). Attention takes
# less time than the rest of a kernel: one after the other, they do not end together, and the line of progress moves.
units = $(wildcard $(1:%=core/src/kernel/units/%.c))
KERNEL_SRC := $(call units,$(kernels))
LEFT_OUT_SRC := $(call units,$(kernels_left_out))
PARTED_SRC := $(filter-out %_bf16.c,$(KERNEL_SRC))
parts := f32.attention f32.rest f64.attention f64.rest
CORE_SRC := $(filter-out $(LEFT_OUT_SRC),$(KERNEL_SRC) $(filter-out $(KERNEL_SRC),$(sort $(shell find core/src -name '*.c' 2>/dev/null))))
SERVER_SRC := $(sort $(shell find server -name '*.c' 2>/dev/null))
PUBLIC_HEADERS := $(wildcard core/include/attn/*.h)

obj = $(foreach source,$(filter $(PARTED_SRC),$(1)),$(parts:%=$(BUILD)/$(basename $(source)).%.o)) \
      $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(PARTED_SRC),$(1)))
# avx2.f32.rest.o is avx2.c compiled with -DKERNEL_f32 -DKERNEL_rest.
part_flags = $(foreach part,$(parts),$(if $(filter %.$(part).o,$(1)),$(addprefix -DKERNEL_,$(subst ., ,$(part)))))
CORE_OBJ := $(call obj,$(CORE_SRC))
SERVER_OBJ := $(call obj,$(filter-out server/main.c,$(SERVER_SRC)))
SHARED := $(BUILD)/libattn.so.$(VERSION)

# Without OMP_NUM_THREADS, which is set for the BLAS, but which nproc obeys.
PROCESSORS = $(shell env -u OMP_NUM_THREADS nproc)
# All processors, unless make was called with -j.
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(PROCESSORS))
# A recipe that begins with $(call step,WHAT) is counted and told when mk/build.sh calls make.
step = $(if $(STEPS),$(eval STEP += x)mk/progress.sh $(words $(STEP)) $(STEPS) $(1) && )
build = +$(Q)mk/build.sh $(BUILD)/command '$(1)' $(MAKE) --no-print-directory $(jobs) $(2)

##@ Every day

.DELETE_ON_ERROR:
.PHONY: FORCE $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' Makefile mk/*.mk)

all: $(BUILD)/attnd $(BUILD)/libattn.a $(SHARED) ## build the server and the library (installs nothing)

run: ## install what is missing, build, serve on 127.0.0.1:8080 (ATTND_LISTEN=address:port)
	$(Q)mk/checks/port.sh "$${ATTND_LISTEN:-127.0.0.1:8080}"
	$(Q)mk/install_packages.sh $(RUN_PACKAGES)
	$(call build,server,KERNELS=$(if $(filter file,$(origin KERNELS)),native,'$(KERNELS)'))
	$(Q)exec $(BUILD)/attnd

deps: ## install what building, running and testing take (apt-get, only when something is missing)
	$(Q)mk/install_packages.sh $(TEST_PACKAGES)

clean: ## remove everything that was built
	$(Q)rm -rf build compile_commands.json

help: ## this list
	@awk -F':.*## ' '/^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile $(addprefix mk/,tests.mk lint.mk install.mk bench.mk release.mk)

# This file changes with the command, so that another compiler or another flag, also of some sources alone, rebuilds everything.
command := $(strip $(COMPILE) $(LINK) $(LDFLAGS) $(SOVERSION) $(flags_of_sources))
same = $(if $(subst x$(1)x,,x$(2)x)$(subst x$(2)x,,x$(1)x),,same)
$(BUILD)/command: $(if $(call same,$(command),$(file <$(BUILD)/command)),,FORCE)
	$(Q)mkdir -p $(@D)
	$(Q){ $(PKG_CONFIG) --exists $(PKGS_SERVER) $(PKGS_CORE) 2>/dev/null && command -v esbuild >/dev/null; } || \
	    { echo "missing (by Debian's names): $$(mk/missing_packages.sh $(RUN_PACKAGES)); on Debian 'make deps' installs them" >&2; exit 1; }
	$(Q)echo '$(subst ','\'',$(command))' > $@

# So does this one with the list of kernels, for the table of kernels alone.
$(BUILD)/kernels: $(if $(call same,$(kernels),$(kernels_built)),,FORCE)
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(kernels)' > $@

$(call obj,core/src/kernel/units/kernels.c): $(BUILD)/kernels

$(BUILD)/%.o: CPPFLAGS_OF = $(call cppflags_of,$<) $(call part_flags,$@)
$(BUILD)/%.o: CFLAGS_OF = $(call cflags_of,$<)
define compile
$(Q)mkdir -p $(@D)
$(Q)$(call step,compiling $<)$(COMPILE) -MMD -MP -c $< -o $@
endef
define compile_rule
$(BUILD)/$(1).o: %.c $(BUILD)/command
	$$(compile)
endef
$(foreach name,% $(addprefix %.,$(parts)),$(eval $(call compile_rule,$(name))))

$(BUILD)/libattn.a: $(CORE_OBJ)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

# The library exports only the functions that the public headers declare.
$(BUILD)/libattn.map: $(PUBLIC_HEADERS) mk/exported_symbols.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -f mk/exported_symbols.awk $(PUBLIC_HEADERS) > $@

$(SHARED): $(CORE_OBJ) $(BUILD)/libattn.map
	$(Q)$(call step,linking $@)$(LINK) -shared -Wl,-soname,libattn.so.$(SOVERSION) -Wl,--version-script=$(BUILD)/libattn.map $(LDFLAGS) \
	    $(CORE_OBJ) $(LIBS_CORE) $(LDLIBS) -o $@

# A program that links OpenBLAS's archive would include the kernels for complex numbers, which are half of OpenBLAS.
$(BUILD)/unused_kernels.c: mk/unused_kernels.sh
	$(Q)mkdir -p $(@D)
	$(Q)NM='$(NM)' mk/unused_kernels.sh "$$($(CC) $(filter -L%,$(LIBS_CORE)) -print-file-name=libopenblas.a)" > $@

$(BUILD)/unused_kernels.o: $(BUILD)/unused_kernels.c
	$(Q)$(COMPILE) -c $< -o $@

.PHONY: server
server: $(BUILD)/attnd
	@:

$(BUILD)/attnd: $(BUILD)/libattn.a $(BUILD)/server/main.o $(SERVER_OBJ) $(if $(STATIC),$(BUILD)/unused_kernels.o)
	$(Q)$(call step,linking $@)$(LINK) $(if $(PKG_STATIC),-static-pie -Wl$(comma)--gc-sections,-pie) $(LDFLAGS) $(filter %.o,$^) $< $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

include mk/embedded.mk mk/tests.mk mk/bench.mk mk/lint.mk mk/install.mk mk/release.mk

-include $(patsubst %.o,%.d,$(call obj,$(SOURCES)))
