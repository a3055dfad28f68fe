# remuda-launch runs in any image, also one without a C library: static, and only what it needs. The event loop is its
# own (io/static), since libsystemd is not to be had as an archive; TLS is mbedTLS, which fits into 2 MB (ADR 0050).
launch_static := $(shell pkg-config --libs --static jansson yaml-0.1 libnghttp2 libprotobuf-c) -lmbedtls -lmbedx509 -lmbedcrypto -lm
$(B)/bin/remuda-launch: $(call object,job/launcher/main.c $(wildcard io/static/*.c)) $(call archive,base io agent planner job)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -static-pie $(MARKS) -Wl,--gc-sections,--strip-all,--no-eh-frame-hdr $(LDFLAGS) -o $@ $(call whole,$^) $(launch_static)
# Only what is called of an object is linked into it: that is what keeps it below 2 MB. How to unwind is left to debuggers.
small := -Os -fno-asynchronous-unwind-tables -fno-unwind-tables
CFLAGS_job_launcher        += $(small)
CFLAGS_job_launcher_trust  += $(small)
CFLAGS_job_launcher_devices += $(small)
CFLAGS_io_static           += $(small)
CFLAGS_job_world           += $(small)
CFLAGS_job_plan            += $(small)
CFLAGS_job_spec            += $(small)
CFLAGS_base_yaml           += $(small)
CFLAGS_io_grpc             += $(small)
CFLAGS_agent_launch        += $(small)
$(call object,base/json/pb_json.c base/options.c base/json/json_table_encode.c base/sha256.c io/process.c io/process_tree.c): CFLAGS += $(small)
# One test of two implementations: the libraries of the other programs, and what remuda-launch has in their place.
twice := test_sd_event_static test_tls_static test_tls_names_static
unit-build: $(twice:%=$(B)/tests/%)
$(B)/tests/test_sd_event_static: $(call object,io/test_sd_event.c io/static/sd_event.c)
$(B)/tests/test_tls_static: $(call object,io/tls/test_tls.c io/static/tls.c)
$(B)/tests/test_tls_names_static: $(call object,io/tls/test_tls_names.c io/static/tls.c)
$(twice:%=$(B)/tests/%): $(call archive,base io)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(filter %.a,$^) -lcmocka -lgnutls -lmbedtls -lmbedx509 -lmbedcrypto
