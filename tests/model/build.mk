# model-extender: two extenders on a store, a loop and a server in memory, whose names come first; see tests/model/model.h.
model_objects := $(call object,$(addprefix tests/model/,model.c tenants.c views.c world.c stand_ins.c))
model_archives := $(call archive,base io store planner agent scheduler-extender job)
$(B)/tests-bin/model-extender: $(call object,tests/model/model_main.c) $(model_objects) $(model_archives)
	@mkdir -p $(@D)
	$(LINK) -Wl,--allow-multiple-definition -o $@ $(call whole,$^) $(LIBS)
programs: $(B)/tests-bin/model-extender

$(B)/fuzz/fuzz_extender_model $(B)/fuzz/fuzz_extender_doors: $(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(model_objects) $(model_archives)
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer -Wl,--allow-multiple-definition -o $@ $(call whole,$^) $(LIBS)
