# echo-extender: the peer of bench_scheduler, see echo_extender.c
$(B)/bench-bin/echo-extender: $(call object,tests/bench/echo_extender.c) $(call archive,$(rooms))
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
bench: $(B)/bench-bin/echo-extender

# create-pods: the control plane's own limit, beside which bench_jobs puts the controller's time
$(B)/bench-bin/create-pods: $(call object,tests/bench/create_pods.c) $(call archive,$(rooms))
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(LIBS)
bench: $(B)/bench-bin/create-pods

# bench_reserve: an extender as its tests have it
$(B)/bench/bench_reserve: $(B)/obj/tests/bench/bench_reserve.o $(B)/lib/tests.a $(archives)
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(call whole,$(B)/lib/tests.a $(archives)) -lcmocka $(LIBS)
