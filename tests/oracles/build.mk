# The planners, one question a line: what the brute force in planners.py asks. Built with the programs, since the
# integration tests run it; never installed.
programs: $(B)/oracle/planner_lines
$(B)/oracle/planner_lines: $(call object,tests/oracles/planner_lines.c) $(call archive,$(rooms))
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
