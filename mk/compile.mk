# compile.mk: libraries, warnings and flags, by MODE, STATIC and compiler.

PKG_CONFIG ?= pkg-config
NM ?= nm
comma := ,

PKGS_SERVER := libmicrohttpd jansson zlib libzstd libpng freetype2 nettle libutf8proc libpcre2-8
# TLS, if libmicrohttpd was built with it; otherwise --tls-cert is refused.
PKGS_SERVER += $(shell $(PKG_CONFIG) --print-requires-private libmicrohttpd 2>/dev/null | grep -x gnutls)
PKGS_CORE := openblas
PKGS_TESTS := check
pkg = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
PKG_STATIC := $(if $(filter 1,$(STATIC)),--static)
CFLAGS_CORE := $(call pkg,--cflags,$(PKGS_CORE))
CFLAGS_SERVER := $(call pkg,--cflags,$(PKGS_SERVER))
CFLAGS_TESTS := $(call pkg,--cflags,$(PKGS_TESTS))
# The Fortran library is only for LAPACK, which attnd does not call.
LIBS_CORE := $(patsubst -lopenblas,$(if $(STATIC),-l:libopenblas.a,-lopenblas),$(filter-out -lgfortran,\
             $(call pkg,$(PKG_STATIC) --libs,$(PKGS_CORE)))) -lm
LIBS_SERVER := $(call pkg,$(PKG_STATIC) --libs,$(PKGS_SERVER))
LIBS_TESTS := $(call pkg,--libs,$(PKGS_TESTS))

# No -Ofast and no -ffast-math: they turn isnan into 0, and masks are infinities.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wcast-qual -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wdouble-promotion -Wimplicit-fallthrough
# -g1 has functions and lines for backtraces. Full debug information takes the compiler a third longer; CFLAGS=-g asks for it.
MODE_FLAGS_release := -O3 -g1 -fstack-protector-strong
MODE_FLAGS_sanitize := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS_thread := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
# Two warnings crash gcc 12 without optimisation.
MODE_FLAGS_coverage := -O0 -g -fprofile-arcs -ftest-coverage -Wno-format-overflow -Wno-format-truncation
MODE_FLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS := $(MODE_FLAGS_$(MODE))
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

# Hardening: every flag that the compiler, its linker and the C library accept without a
# warning. Debian's crt1.o has no note about return addresses and indirect jumps (CET), and without -z a program that is
# linked with it would have none either. Only a C library that was built for CET enforces the note.
HARDENING := -D_FORTIFY_SOURCE=3 -fstack-clash-protection \
             $(if $(filter x86_64,$(ARCH)),-fcf-protection -Wl$(comma)-z$(comma)ibt$(comma)-z$(comma)shstk)
passes = $(if $(shell $(CC) -Werror -Wsystem-headers -O1 -fPIC -U_FORTIFY_SOURCE $(1) -include features.h \
         -nostdlib -shared -Wl,--fatal-warnings -x c /dev/null -o /dev/null 2>&1 || echo no),,$(1))
ifeq ($(MODE),release)
HARDENED := $(or $(call passes,$(HARDENING)),$(foreach flag,$(HARDENING),\
            $(or $(call passes,$(flag)),$(patsubst %=3,%=2,$(filter -D%,$(flag))))))
endif

OUR_CPPFLAGS := -Icore/include -D_GNU_SOURCE -DATTN_VERSION=\"$(VERSION)\" \
                $(if $(HARDENED),-U_FORTIFY_SOURCE $(filter -D%,$(HARDENED)))
OUR_CPPFLAGS += $(if $(filter gnutls,$(PKGS_SERVER)),-DHAVE_GNUTLS)
# No program replaces our functions at run time, so calls within a file may become inline.
# The source marks every fused multiply-add (fma_vec in core/src/kernel/vector/operations.inc.h). If the compiler chose, the same
# sum could have other bits in another loop.
OUR_CFLAGS := -std=c17 -ffp-contract=off -fPIC -fno-semantic-interposition -pthread $(WARN) \
              $(if $(filter 1,$(WERROR)),-Werror) $(MODE_FLAGS) $(filter -f%,$(HARDENED))
OUR_LDFLAGS := -pthread $(MODE_FLAGS) -Wl,-z,relro,-z,now $(filter -Wl%,$(HARDENED))
COMPILE = $(CC) $(OUR_CPPFLAGS) $(CPPFLAGS_OF) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS_OF) $(CFLAGS)
LINK = $(CC) $(OUR_LDFLAGS)

# KERNELS=all: every kernel of the architecture. native: the portable one and the best of this processor, for half of the
# compiler's work. A folder that was built with more keeps them. KERNELS may name kernels, too; the portable one always comes along.
KERNELS ?= all
kernels_of_x86_64 := avx2 avx512 avx512_bf16
kernels_of_aarch64 := neon
kernels_of_arch := $(kernels_of_$(ARCH))
kernels_wanted := $(if $(filter all,$(KERNELS)),$(kernels_of_arch),$(if $(filter native,$(KERNELS)),\
    $(shell mk/native_kernels.sh $(ARCH) $(kernels_of_arch)),$(patsubst avx512_bf16,avx512 avx512_bf16,$(filter-out portable,$(KERNELS)))))
unknown_kernels := $(filter-out $(kernels_of_arch),$(kernels_wanted))
$(if $(unknown_kernels),$(error KERNELS=all, native, or names of portable $(kernels_of_arch); not $(unknown_kernels)))
kernels_built := $(file <$(BUILD)/kernels)
kernels_left_out := $(filter-out $(kernels_wanted) $(if $(filter native,$(KERNELS)),$(kernels_built)),$(kernels_of_arch))
kernels := portable $(filter-out $(kernels_left_out),$(kernels_of_arch))

# CFLAGS_PATH and CPPFLAGS_PATH are the flags of one source.
# Each kernel is the same source compiled for another instruction set. The table in kernels.c chooses one at run time.
ifeq ($(ARCH),x86_64)
FLAGS_OF_avx2 := -mavx2 -mfma -mf16c
FLAGS_OF_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
FLAGS_OF_avx512_bf16 := $(FLAGS_OF_avx512) -mavx512bf16
endif
# Without fused multiply-adds it is slow in any case, and -O2 takes the compiler a quarter less.
FLAGS_OF_portable := $(if $(filter release,$(MODE)),-O2)
# The table has a row for each kernel; rows of kernels that are left out are empty.
CPPFLAGS_core/src/kernel/units/kernels.c := $(addprefix -DWITHOUT_,$(kernels_left_out))
# bench/machine.c measures the peak of the processor, with multiply-adds that the compiler fuses.
CFLAGS_bench/machine.c := -ffp-contract=fast
# Code that is only run, and code that computes most: with these flags the whole takes a third of the time.
TEST_FLAGS_in_coverage := -O1 -fno-profile-arcs -fno-test-coverage
CORE_FLAGS_in_coverage := -O1 -fno-early-inlining
# clang takes minutes to optimise a kernel with all its checks; inputs that are made by fuzzing are small.
KERNEL_FLAGS_in_fuzz := -O0

# What runs when a model, a layer or the program starts. The compiler needs a third less for it.
STARTING := $(addprefix server/,config/% program/% service/registry/% codec/checkpoint/%)
STARTING_FLAGS_in_release := -O1

# The server sees only the core's public headers; tests of the core may include its private ones.
cppflags_of = $(CPPFLAGS_$(1)) $(if $(filter core/% $(BENCH_SRC),$(1)),-Icore/src $(CFLAGS_CORE),$(if $(filter tests/unit/core/%,$(1)),\
    -Icore/src -Itests/support/core $(CFLAGS_CORE) $(CFLAGS_TESTS),$(if $(filter tests/%,$(1)),\
    -Iserver -Icore/src -Itests/support/core -Itests/support/server $(CFLAGS_CORE) $(CFLAGS_SERVER) $(CFLAGS_TESTS),-Iserver $(CFLAGS_SERVER))))

# The references of tests widen to long double on purpose, which is a promotion to clang.
cflags_of = $(CFLAGS_$(1)) $(if $(filter core/%,$(1)),$(CORE_FLAGS_in_$(MODE))) \
            $(if $(filter core/src/kernel/units/%,$(1)),$(FLAGS_OF_$(basename $(notdir $(1)))) $(KERNEL_FLAGS_in_$(MODE))) \
            $(if $(filter $(STARTING),$(1)),$(STARTING_FLAGS_in_$(MODE))) \
            $(if $(filter tests/%,$(1)),-Wno-double-promotion $(TEST_FLAGS_in_$(MODE)))

# All that the two above give to one source or another; but the list of kernels rebuilds kernels.c alone.
flags_of_sources := $(value cppflags_of) $(value cflags_of) $(foreach name,$(filter-out %/kernels.c,$(sort \
    $(filter FLAGS_OF_% CFLAGS_% CPPFLAGS_% STARTING% %_FLAGS_in_$(MODE),$(.VARIABLES)))),$(name)=$($(name)))
