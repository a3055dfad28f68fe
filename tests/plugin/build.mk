# plugin-host: the device plugin alone, driven line by line from a test; see plugin_host.c
$(B)/tests-bin/plugin-host: $(call object,tests/plugin/plugin_host.c) $(B)/lib/agent.a $(B)/lib/extender.a $(B)/lib/remuda.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call object,tests/plugin/plugin_host.c) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)
programs: $(B)/tests-bin/plugin-host
