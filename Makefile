# make help lists the targets. Everything built goes under build/ (B=DIR for another place).
B        ?= build
CFLAGS   ?= -O2 -g
WERROR   ?= -Werror
PREFIX   ?= /usr/local
PYTHON   ?= python3
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla $(WERROR)
HARDEN   := -fstack-protector-strong -fPIE $(if $(findstring -fsanitize,$(CFLAGS)),,-D_FORTIFY_SOURCE=2)
REVISION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
ALL_C     = -std=gnu11 -ffp-contract=off -D_GNU_SOURCE -I. -Ilib -I$(B)/generated $(WARN) $(HARDEN) $(CFLAGS)
LINK      = $(CC) $(CFLAGS) -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
PKG      := libmicrohttpd gnutls libcurl jansson libsystemd libnghttp2 libprotobuf-c yaml-0.1 zlib
LIBS     := $(shell pkg-config --libs $(PKG) 2>/dev/null) -ldl -lm

all: programs ## build every program into build/bin/ (the default)

# --- what is built from what: folders are the architecture, the rules below follow from their names ------------
library    := $(wildcard lib/core/*.c lib/codec/*.c lib/io/*.c lib/discovery/*.c lib/discovery/vendor/*.c lib/cluster/*.c)
agent      := $(filter-out agent/main.c,$(wildcard agent/*.c agent/vendor/*.c agent/probe/*.c plugin/*.c))
extender   := $(filter-out scheduler-extender/main.c,$(wildcard scheduler-extender/*.c scheduler-extender/job/*.c))
launcher   := $(filter-out launcher/main.c,$(wildcard launcher/*.c))
cli        := $(filter-out cli/main.c,$(wildcard cli/*.c))
unit       := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
fuzzers    := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
benches    := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/bench_*.c))
object      = $(patsubst %.c,$(B)/obj/%.o,$(1))
archives   := $(B)/lib/agent.a $(B)/lib/extender.a $(B)/lib/launcher.a $(B)/lib/cli.a $(B)/lib/remuda.a

$(B)/lib/remuda.a:   $(call object,$(library))
$(B)/lib/agent.a:    $(call object,$(agent))
$(B)/lib/extender.a: $(call object,$(extender))
$(B)/lib/launcher.a: $(call object,$(launcher))
$(B)/lib/cli.a:      $(call object,$(cli))
%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

programs := $(if $(wildcard agent/main.c),remuda-agent) $(if $(wildcard scheduler-extender/main.c),remuda-extender) \
            $(if $(wildcard launcher/main.c),remuda-launch) $(if $(wildcard cli/main.c),remuda)
programs: $(addprefix $(B)/bin/,$(programs)) $(B)/programs.yaml

# The program table of this build: `remuda run JOB.yaml --programs build/programs.yaml` works before any installation.
$(B)/programs.yaml: Makefile
	@mkdir -p $(@D)
	@{ echo '# Made by `make`: the programs of this build. See remuda-launch(1).'; echo 'programs:'; \
	   for runtime in cpu sunway opencl; do echo "  $$runtime: {path: $(abspath $(B))/bin/remuda-train-$$runtime, args: [--evaluate]}"; done; } >$@

$(B)/bin/remuda-agent: $(call object,agent/main.c) $(B)/lib/agent.a $(B)/lib/extender.a $(B)/lib/remuda.a
$(B)/bin/remuda-extender: $(call object,scheduler-extender/main.c) $(B)/lib/extender.a $(B)/lib/remuda.a
$(B)/bin/remuda: $(call object,cli/main.c) $(B)/lib/cli.a $(B)/lib/remuda.a
$(B)/bin/remuda-agent $(B)/bin/remuda-extender $(B)/bin/remuda:
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_C) $(CFLAGS_$(subst /,_,$(<D))) -MMD -MP -c -o $@ $<
$(call object,cli/main.c agent/main.c scheduler-extender/main.c launcher/main.c): CFLAGS += -DREMUDA_VERSION='"0.1.0 ($(REVISION))"'

# A folder with rules of its own (another compiler, another library) keeps them beside its code.
-include $(wildcard trainer/build.mk launcher/build.mk lib/*/build.mk plugin/build.mk tests/*/build.mk packaging/build.mk)

# --- tests ------------------------------------------------------------------------------------------------------
$(B)/tests/%: $(B)/obj/tests/unit/%.o $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $< -Wl,--start-group $(archives) -Wl,--end-group -lcmocka $(LIBS)

ASAN := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

check: deps ## install what is missing and pass the tests; ends with `N passed, N failed`
	@$(MAKE) --no-print-directory all check-layers format-check check-docs
	@$(MAKE) --no-print-directory B=$(B)/asan CFLAGS='$(ASAN)' unit-build
	@B=$(B) tests/run-tests $(B)/asan/tests tests/integration
unit: unit-build ## build and run the unit tests alone, without sanitizers
	@B=$(B) tests/run-tests $(B)/tests
unit-build: $(unit)
check-asan: ## the unit tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory unit B=$(B)/asan CFLAGS='$(ASAN)'
integration: all ## the tests that run the programs
	@B=$(B) tests/run-tests tests/integration
check-layers: ## includes may only point down
	@tools/check-layers
check-docs: programs ## every option, metric and reason word is documented
	@if [ -x tools/check-docs ]; then B=$(B) tools/check-docs; fi
e2e: all ## prove it on a real Kubernetes (skips, saying why, where it cannot run)
	@if [ -x tests/e2e/run ]; then B=$(B) tests/e2e/run; else echo "1..0 # SKIP no e2e yet"; fi
demo: deps ## run the main job from end to end and write build/demo/report.html
	@$(MAKE) --no-print-directory all
	@B=$(B) tests/demo/run
bench: all $(benches) ## measure every figure beside its limit or peer (BENCH=NAME for one)
	@B=$(B) tests/run-bench $(BENCH)

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang-14
fuzz: ## run every fuzz target for FUZZ_SECONDS (60), corpora in tests/fuzz/corpus
	@$(MAKE) --no-print-directory B=$(B)/fuzzing CC=$(FUZZ_CC) CFLAGS='-O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all' fuzz-build
	@B=$(B)/fuzzing FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-fuzz
fuzz-build: $(fuzzers)
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(archives)
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(archives) -Wl,--end-group $(LIBS)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $< -Wl,--start-group $(archives) -Wl,--end-group $(LIBS)

# --- the rest ---------------------------------------------------------------------------------------------------
C_FILES = $(shell git ls-files '*.c' '*.h' 2>/dev/null)
CLANG_FORMAT ?= $(shell command -v clang-format-14 || command -v clang-format)
format: ## lay out every C file
	@$(CLANG_FORMAT) -i $(C_FILES)
format-check: ## fail if a C file is not laid out
	@$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)
tidy: ## the static analyser over everything (slow)
	@tools/tidy
deps: ## install the packages that are missing (root or sudo), or print the one command to run
	@tools/deps
install: all ## install programs, man pages, units (DESTDIR, PREFIX)
	@B=$(B) DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' tools/install
clean: ## remove everything built
	rm -rf $(B)
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t16

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
.SECONDARY: # keep objects between runs
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
.PHONY: all programs check unit unit-build check-asan integration check-layers check-docs e2e demo bench fuzz fuzz-build \
        format format-check tidy deps install clean help
