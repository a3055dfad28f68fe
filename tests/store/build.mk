# store-host: a store alone, driven line by line from a test; see store_host.c
$(B)/tests-bin/store-host: $(call object,tests/store/store_host.c) $(B)/lib/remuda.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)
programs: $(B)/tests-bin/store-host
