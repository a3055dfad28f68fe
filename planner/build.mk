# The planners are a package: `make planner` builds their library and a `remuda` that knows `plan` alone, `make check-planner`
# runs their tests with it. Below them stand base/, the pure rows of agent/inventory and agent/vendor, and the clock; of
# libraries jansson, libyaml and protobuf-c (ONNX). Everything of the package's own is built into build/planner/.
package         := $(B)/planner
planner_below   := $(call object,$(call sources,agent/inventory agent/vendor) io/clock.c)
planner_libs    := $(shell pkg-config --libs jansson yaml-0.1 libprotobuf-c 2>/dev/null) -lm
planner_tests   := $(patsubst %.c,$(package)/tests/%,$(notdir $(call tests_of,planner)))
planner_archive := $(call archive,planner base)

$(package)/bin/remuda: $(call object,planner/commands/main.c) $(planner_below) $(planner_archive)
# The planners, one question a line: what the brute force in tests/oracles/planners.py asks; never installed.
$(B)/oracle/planner_lines $(package)/oracle/planner_lines: $(call object,tests/oracles/planner_lines.c) $(planner_archive)
$(package)/bin/remuda $(B)/oracle/planner_lines $(package)/oracle/planner_lines:
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(planner_libs)
programs: $(B)/oracle/planner_lines

$(foreach test,$(call tests_of,planner),$(eval $(package)/tests/$(basename $(notdir $(test))): $(call object,$(test))))
$(planner_tests): $(planner_archive)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %/$(@F).o,$^) $(call whole,$(planner_archive)) -lcmocka $(planner_libs)

planner: $(package)/bin/remuda $(package)/oracle/planner_lines ## build the planners alone (no agent, no MPI, no BLAS)
check-planner: planner $(planner_tests) ## run their tests, in under a minute and without ../shared
	@B=$(package) REMUDA_SHARED=$(package)/none tests/run-tests $(package)/tests
	@B=$(package) REMUDA_SHARED=$(package)/none TEST_ONLY='^test_(planners|plan_split|plan_model|plan_network)$$' \
	        tests/run-tests tests/integration
.PHONY: planner check-planner
