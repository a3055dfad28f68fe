# plugin-host, store-host: a device plugin, a store alone, driven line by line from a test; see their sources.
hosts := $(addprefix $(B)/tests-bin/,plugin-host store-host)
$(hosts): $(B)/tests-bin/%-host: $(B)/obj/tests/support/%_host.o $(call archive,base io store planner agent plugin scheduler-extender job)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
programs: $(hosts)

# An agent that knows a vendor more: its row is one file, its registration one line.
$(B)/tests-bin/remuda-agent-acme: $(call object,agent/main.c tests/support/vendor_acme.c tests/support/vendor_rows.c) $(call archive,base io store planner agent plugin scheduler-extender job)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
programs: $(B)/tests-bin/remuda-agent-acme
