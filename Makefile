# make help lists the targets. Everything built goes under build/ (B=DIR for another place).
B        ?= build
# as many jobs as processors, unless make was told
ifeq ($(filter -j%,$(filter-out --%,$(MAKEFLAGS)))$(findstring j,$(filter-out -%,$(firstword $(MAKEFLAGS)))),)
MAKEFLAGS += -j$(shell nproc)
endif
CFLAGS   ?= -O2 -g
WERROR   ?= -Werror
PREFIX   ?= /usr/local
PYTHON   ?= python3
comma    := ,
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla $(WERROR)
# What the compiler knows of: stack clash, every variable set (gcc), shadow stacks and branch targets (x86-64, arm64). No tables to
# unwind: nothing in C reads them, debuggers have their own. Paths of this folder do not get into what is built: two folders, the same
# bytes (tools/check-reproducible). tools/check-hardening asks the results.
wanted   := -fno-asynchronous-unwind-tables -fstack-clash-protection -ftrivial-auto-var-init=zero -fcf-protection=full -mbranch-protection=standard
HARDEN   := -fstack-protector-strong -fPIE -ffile-prefix-map=$(CURDIR)=. $(if $(findstring -fsanitize,$(CFLAGS))$(findstring -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) \
            $(shell for f in $(wanted); do echo 'int x;' | $(CC) -Werror $$f -x c -c -o /dev/null - 2>/dev/null && echo $$f; done)
# Relocations of a table's pointers are packed (a bit each and not 24 bytes: 0.3 MiB of the image) where this linker can.
# Debian's start files (crt1.o) carry no mark of a shadow stack, so the linker is told; they have no landing pads, so it is told no more.
MARKS    := -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code $(if $(findstring -fcf-protection,$(HARDEN)),-Wl$(comma)-z$(comma)shstk) \
            $(if $(shell $$($(CC) -print-prog-name=ld) -z pack-relative-relocs --help 2>/dev/null | grep pack-relative),-Wl$(comma)-z$(comma)pack-relative-relocs)
REVISION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
ALL_C     = -std=gnu11 -ffp-contract=off -D_GNU_SOURCE -I. -I$(B)/generated $(WARN) $(HARDEN) -ffunction-sections -fdata-sections $(CFLAGS)
LINK      = $(CC) $(CFLAGS) -pie $(MARKS) -Wl,--as-needed $(LDFLAGS)
PKG      := libmicrohttpd gnutls libcurl jansson libsystemd libnghttp2 libprotobuf-c yaml-0.1 zlib
LIBS     := $(shell pkg-config --libs $(PKG) 2>/dev/null) -ldl -lm

all: programs ## build every program into build/bin/ (the default)

# A room is a folder; its sources are the .c files below it, its tests the test_*.c beside them. Each room becomes one
# archive; programs link what they need of them. tools/floors says which room may include which.
rooms      := base io store planner agent plugin scheduler-extender job cli
mains      := agent/main.c scheduler-extender/main.c job/controller/main.c job/launcher/main.c cli/main.c planner/commands/main.c cli/one/main.c
# Sorted: the order of a folder on disk would be the order of the code in a program.
sources     = $(filter-out $(mains),$(sort $(shell find $(1) -name '*.c' ! -name 'test_*' ! -path '*/static/*')))
tests_of    = $(sort $(shell find $(1) -name 'test_*.c'))
object      = $(patsubst %.c,$(B)/obj/%.o,$(1))
archive     = $(patsubst %,$(B)/lib/%.a,$(1))
# A package is built and tested where what it stands on is: MPI and BLAS (`make trainer` says what is missing).
packages   := $(if $(and $(shell command -v mpicc),$(shell pkg-config --exists openblas libjpeg libpng && echo yes)),trainer)
unit_tests := $(call tests_of,$(rooms) $(packages))
unit       := $(patsubst %.c,$(B)/tests/%,$(notdir $(unit_tests)))
fuzzers    := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(filter-out $(if $(packages),,tests/fuzz/fuzz_train_%),$(wildcard tests/fuzz/fuzz_*.c)))
benches    := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/bench_*.c))
archives   := $(call archive,$(rooms))
space      := $(subst ,, )
whole       = -Wl,--start-group $(1) -Wl,--end-group

$(foreach room,$(rooms),$(eval $(call archive,$(room)): $(call object,$(call sources,$(room)))))
%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
	$(if $(filter-out $(support),$@),$(ARCHIVE_AFTER))

programs: $(addprefix $(B)/bin/,remuda-agent remuda-extender remuda-controller remuda-launch remuda) $(B)/one/remuda $(B)/programs.yaml

# The program table of this build: `remuda run JOB.yaml --programs build/programs.yaml` works before any installation.
$(B)/programs.yaml: Makefile
	@mkdir -p $(@D)
	@{ echo '# Made by `make`: the programs of this build. See remuda-launch(1).'; echo 'programs:'; \
	   for runtime in cpu sunway opencl; do echo "  $$runtime: {path: $(abspath $(B))/bin/remuda-train-$$runtime, args: [--evaluate]}"; done; } >$@

$(B)/bin/remuda-agent: $(call object,agent/main.c) $(call archive,base io store planner agent plugin scheduler-extender job)
$(B)/bin/remuda-extender: $(call object,scheduler-extender/main.c) $(call archive,base io store planner agent scheduler-extender job)
$(B)/bin/remuda-controller: $(call object,job/controller/main.c) $(call archive,base io store planner agent scheduler-extender job)
$(B)/bin/remuda: $(call object,cli/main.c) $(call archive,$(rooms))
$(B)/bin/remuda-agent $(B)/bin/remuda-extender $(B)/bin/remuda-controller $(B)/bin/remuda:
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_C) $(CFLAGS_$(subst /,_,$(<D))) -MMD -MP -c -o $@ $<
# A container image has the programs that share nearly all of their code in one file, a link for each name (cli/one/main.c).
in_one := agent scheduler-extender job/controller cli
$(B)/obj/one/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_C) -Wno-missing-prototypes -Dmain=$(subst -,_,$(subst /,_,$(<D)))_main -MMD -MP -c -o $@ $<
$(patsubst %,$(B)/obj/one/%/main.o,$(in_one)): | $(proto_header)
$(B)/one/remuda: $(call object,cli/one/main.c) $(patsubst %,$(B)/obj/one/%/main.o,$(in_one)) $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
$(call object,$(mains)) $(patsubst %,$(B)/obj/one/%/main.o,$(in_one)): CFLAGS += -DREMUDA_REVISION='"$(REVISION)"'

# Protocol Buffers: ROOM/NAME.proto -> build/generated/ROOM/NAME.pb-c.{c,h}, in the archive of its room, and the bounds of
# its fields, NAME.bounds.h.
protos       := $(sort $(shell find $(rooms) -name '*.proto'))
proto_header := $(protos:%.proto=$(B)/generated/%.pb-c.h)
# The runbooks of docs/, in the program that serves them.
runbooks     := $(B)/generated/scheduler-extender/runbooks.inc
$(runbooks): tools/runbook-rows docs/runbooks $(sort $(wildcard docs/runbooks/*.md))
	@mkdir -p $(@D)
	@tools/runbook-rows $(filter %.md,$^) >$@
$(call object,scheduler-extender/runbooks.c): | $(runbooks)
# The files of the page, as they are, in the programs that serve it.
page_files   := $(sort $(wildcard scheduler-extender/page/assets/*))
page_assets  := $(B)/generated/scheduler-extender/page_assets.inc
page_paths   := $(B)/generated/scheduler-extender/page_paths.inc
$(page_assets) $(page_paths): $(B)/generated/scheduler-extender/page_%.inc: tools/page-assets scheduler-extender/page/assets $(page_files)
	@mkdir -p $(@D)
	@tools/page-assets $(subst assets,rows,$*) $(page_files) >$@
$(call object,scheduler-extender/page/page_assets.c): $(page_assets)
$(call object,scheduler-extender/extender.c scheduler-extender/commands/ui.c): $(page_paths)
generated: $(proto_header) $(runbooks) $(page_assets) $(page_paths) # what an analyser has to find
$(B)/generated/%.pb-c.h $(B)/generated/%.pb-c.c $(B)/generated/%.bounds.h: %.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=. --c_out=$(B)/generated $<
	tools/proto-bounds $< >$(B)/generated/$*.bounds.h
$(protos:%.proto=$(B)/obj/generated/%.pb-c.o): | $(proto_header)
# generated code keeps its own habits: no warnings asked for
$(protos:%.proto=$(B)/obj/generated/%.pb-c.o): $(B)/obj/generated/%.pb-c.o: $(B)/generated/%.pb-c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -I$(B)/generated $(HARDEN) $(CFLAGS) -w -c -o $@ $<
$(foreach proto,$(protos),$(eval $(call archive,$(firstword $(subst /, ,$(proto)))): $(B)/obj/generated/$(proto:.proto=.pb-c.o)))
$(call object,$(call sources,$(rooms)) $(mains) $(unit_tests) $(wildcard tests/*/*.c)): | $(proto_header)

# A folder with rules of its own (another compiler, another library) keeps them beside its code.
-include $(wildcard trainer/build.mk job/launcher/build.mk planner/build.mk tests/*/build.mk)

# Tests
support := $(B)/lib/tests.a
$(support): $(call object,$(addprefix tests/support/,machine_text.c http_child.c dir_store.c kube_store.c memory_store.c controller_bed.c extender_bed.c refused_timers.c))
$(foreach test,$(unit_tests),$(eval $(B)/tests/$(basename $(notdir $(test))): $(call object,$(test))))
# Two tests have the vendors' libraries in themselves.
$(B)/tests/test_probe_libraries $(B)/tests/test_measure_kernels: override LDFLAGS += -Wl,--wrap=dlsym,--wrap=dlopen
# Others stand between our code and a kernel or a library that refuses.
$(B)/tests/test_tree: override LDFLAGS += -Wl,--wrap=syscall
$(B)/tests/test_http_client: override LDFLAGS += -Wl,--wrap=sd_event_add_io
$(addprefix $(B)/tests/,test_extender_writes test_grpc_requests test_launches test_plugin_lists test_node_report test_store_dir): override LDFLAGS += -Wl,--wrap=sd_event_add_time_relative
$(B)/tests/test_extender_writes: override LDFLAGS += -Wl,--wrap=http_suspend
$(B)/tests/test_plugin_lists: override LDFLAGS += -Wl,--wrap=grpc_call_send
$(B)/tests/test_neighbours: override LDFLAGS += -Wl,--wrap=neighbour_view_takes
$(B)/tests/test_store_kubernetes_write: override LDFLAGS += -Wl,--wrap=loop_now_usec
$(B)/tests/test_unread: override LDFLAGS += -Wl,--wrap=json_object_get,--wrap=json_object_iter_value
$(B)/tests/test_repair: override LDFLAGS += -Wl,--wrap=realloc
tls_calls := x509_privkey_init x509_privkey_generate x509_privkey_export2 rnd x509_crt_init \
	x509_crt_set_version x509_crt_set_serial x509_crt_set_activation_time \
	x509_crt_set_expiration_time x509_crt_set_dn_by_oid x509_crt_set_key x509_crt_get_key_id \
	x509_crt_set_subject_key_id x509_crt_set_authority_key_id x509_crt_set_basic_constraints \
	x509_crt_set_key_usage x509_crt_set_key_purpose_oid x509_crt_set_subject_alt_name \
	x509_crt_sign2 x509_crt_export2 x509_crt_import x509_crt_list_import x509_crt_list_verify \
	certificate_allocate_credentials certificate_set_x509_key_mem certificate_set_x509_trust_mem \
	certificate_verify_peers2 init priority_set_direct credentials_set alpn_set_protocols \
	handshake
$(B)/tests/test_tls_refusals: override LDFLAGS += $(foreach call,$(tls_calls),-Xlinker --wrap=gnutls_$(call))
$(unit): $(support) $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %/$(@F).o,$^) $(call whole,$(filter %.a,$^)) -lcmocka $(LIBS)

ASAN := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# The build behind the tests is a make of its own: tests would inherit the descriptors by which makes share jobs.
check: ## install what is missing and pass the tests; ends with `N passed, N failed`
	@tools/deps build trainer check
	@$(MAKE) --no-print-directory all check-house check-dead format-check check-docs check-hardening
	@B=$(B) STRICT_SKIPS=1 tests/run-tests --behind "env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory B=$(B)/asan CC='$(CC)' CFLAGS='$(ASAN)' unit-build" \
	        $(B)/asan/tests tests/integration python/tests
unit: unit-build ## build and run the unit tests alone, without sanitizers
	@B=$(B) tests/run-tests $(B)/tests
unit-build: $(unit)
check-asan: ## the unit tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory unit B=$(B)/asan CFLAGS='$(ASAN)'
# gcc sets to zero what begins without a value (HARDEN), and so hides who relies on it; clang fills it with 0xAA here. Commands have
# no unit tests: these run most of them, and wait for little.
check-clang: ## build all with clang and pass the unit tests and those of commands; what begins without a value is not zero there
	@$(MAKE) --no-print-directory clang-programs
	@B=$(B)/clang tests/run-tests $(B)/clang/tests
	@B=$(B)/clang TEST_ONLY='^test_(doctor|listing|plan_launch|plan_model|plan_speeds|simulate|top)$$' tests/run-tests tests/integration
clang-programs:
	@$(MAKE) --no-print-directory -s B=$(B)/clang CC=$(FUZZ_CC) CFLAGS='-O1 -gline-tables-only -ftrivial-auto-var-init=pattern' all unit-build
# One room alone: `make agent check-agent` builds and tests the agent without the trainer's MPI, BLAS, OpenCL and data.
tests_in = $(patsubst %.c,$(B)/tests/%,$(notdir $(call tests_of,$(1))))
agent: $(B)/bin/remuda-agent ## build the agent alone
check-agent: $(call tests_in,base io agent plugin) ## its unit tests, and those of what it stands on, alone
	@B=$(B) TEST_ONLY='^($(subst $(space),|,$(notdir $^)))$$' tests/run-tests $(B)/tests
check-python: ## the tests of the Python package alone
	@B=$(B) tests/run-tests python/tests
wheel: ## the Python package as a file for pip, in build/wheel
	@mkdir -p $(B)/wheel
	@cd python/build_backend && $(PYTHON) -c 'import backend; print("$(B)/wheel/" + backend.build_wheel("$(abspath $(B))/wheel"))'
check-page: ## install a browser and pass the tests of the page in it
	@tools/deps build check page
	@$(MAKE) --no-print-directory generated
	@B=$(B) STRICT_SKIPS=1 tests/run-tests tests/page
integration: all ## the tests that run the programs
	@B=$(B) tests/run-tests tests/integration
check-house: ## floors, homes, sizes, names and openings of every file
	@tools/check-house
check-dead: all ## public names that no program uses
	@B=$(B) tools/check-dead
check-hardening: all ## every program has what the compiler and linker can give it
	@B=$(B) tools/check-hardening
failpoints: ## the programs are killed at each of their named places, started again, and nothing is lost (FAILPOINTS=REGEX: some)
	@$(MAKE) --no-print-directory failpoints-programs
	@B=$(B)/failpoints tests/run-tests tests/failpoints
failpoints-programs:
	@$(MAKE) --no-print-directory B=$(B)/failpoints CFLAGS='-O2 -g -DREMUDA_FAILPOINTS' programs
check-packaging: all ## the image and the deb: sizes, libraries, bills of materials, same bytes (fetches curl's source once)
	@tools/deps packaging
	@B=$(B) tests/run-tests tests/packaging
reference: programs ## write docs/reference/options.md and fields.md: what the programs' --help and the kinds' schemas say
	@B=$(B) tools/reference docs/reference
check-docs: programs ## every option, field, metric, variable, reason and decision is documented, every link leads somewhere
	@B=$(B) tools/check-docs
e2e: all ## prove it on a real Kubernetes, and on a real API server alone (skips, saying why, where it cannot run)
	@B=$(B) tests/e2e/run
	@B=$(B) TEST_TIMEOUT_SECONDS=600 tests/run-tests tests/e2e
MACHINES ?= nvidia-h100-x8 amd-mi300x-x8 huawei-910b-x8 huawei-910a-x8 cambricon-mlu590-x8 hygon-z100-x4 google-tpu-v5e-x8 habana-gaudi3-x8 aws-trn2-x16 nvidia-l40s-x4-huawei-310p-x4
cluster: all ## a one-node Kubernetes with Remuda and ten synthetic machines (MACHINES) to try it on, until `make cluster-down` (root)
	@B=$(B) MACHINES='$(MACHINES)' tools/cluster up
cluster-down: ## end it; nothing is left
	@B=$(B) tools/cluster down
demo: deps ## run the main job from end to end and write build/demo/report.html
	@$(MAKE) --no-print-directory all
	@B=$(B) tests/demo/run
bench: all $(benches) ## measure every figure beside its limit or peer (BENCH=NAME for one)
	@B=$(B) tests/run-bench $(BENCH)

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang-14
fuzz: ## run every fuzz target for FUZZ_SECONDS (60), corpora in tests/fuzz/corpus
	@$(MAKE) --no-print-directory fuzz-programs
	@B=$(B)/fuzzing FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-fuzz
fuzz-programs:
	@$(MAKE) --no-print-directory B=$(B)/fuzzing CC=$(FUZZ_CC) CFLAGS='-O1 -gline-tables-only -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all' fuzz-build
fuzz-build: $(fuzzers)
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(archives)
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer -o $@ $< $(call whole,$(filter %.a,$^)) $(LIBS)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(call whole,$(archives)) $(LIBS)

soak: all ## churn for SOAK_SECONDS (3600): memory level, descriptors constant; then STEPS (10^6) of the ledger against its model, and 10^4 failovers
	@B=$(B) tests/soak/run
	@B=$(B) STEPS=$${STEPS:-1000000} FAILOVERS=$${FAILOVERS:-10000} tests/integration/test_extender_model
OF       ?= asan
OF_FLAGS ?= $(ASAN)
torture: ## every unit test, once for each place at which memory, a file, a process or a connection is refused (TORTURE_EVERY=K: every K-th)
	@$(MAKE) --no-print-directory B=$(B)/$(OF) CFLAGS='$(OF_FLAGS)' unit-build $(B)/$(OF)/obj/tests/torture/torture.o
	@mkdir -p $(B)/torture/$(OF) && ln -sfn ../../$(OF)/obj $(B)/torture/$(OF)/obj && ln -sfn ../../$(OF)/generated $(B)/torture/$(OF)/generated
	@$(MAKE) --no-print-directory B=$(B)/torture/$(OF) CFLAGS='$(OF_FLAGS)' packages= ARCHIVE_AFTER='objcopy --redefine-syms=tests/torture/names $$@' \
	        LDFLAGS=$(B)/$(OF)/obj/tests/torture/torture.o torture-build
	@B=$(B) tests/run-torture $(B)/torture/$(OF)/tests
torture-build: $(unit)

# The rest
C_FILES = $(shell git ls-files '*.c' '*.h' 2>/dev/null)
CLANG_FORMAT ?= $(shell command -v clang-format-14 || command -v clang-format)
format: ## lay out every C file
	@$(CLANG_FORMAT) -i $(C_FILES)
format-check: ## fail if a C file is not laid out
	@$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)
tidy: ## the static analyser over the whole tree (slow)
	@tools/tidy
ifeq ($(ARCH),)
images: all ## the container images, their bills of materials and digests, in build/images (ARCH=arm64: cross-built; no container engine needed)
	@tools/deps packaging
	@B=$(B) packaging/build-images
else
images:
	@tools/deps build trainer packaging cross
	@B=$(B) packaging/cross $(ARCH)
endif
deb: all ## the packages for this distribution, in build/deb
	@tools/deps packaging
	@B=$(B) packaging/build-deb
deps: ## install the packages that are missing to build (root or sudo), or print the one command to run
	@tools/deps build trainer
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
.PHONY: all generated programs check check-page check-python wheel unit unit-build check-asan check-clang agent check-agent integration check-house check-dead reference check-docs check-hardening check-packaging failpoints clang-programs failpoints-programs fuzz-programs e2e cluster cluster-down demo bench fuzz fuzz-build soak torture torture-build \
        format format-check tidy deb deps images install clean help
