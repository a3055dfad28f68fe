# remuda-launch runs in any image, also one without a C library: static, and only what it needs. The event loop is its
# own (launcher/static), since libsystemd is not to be had as an archive.
launch_static := $(shell pkg-config --libs --static jansson yaml-0.1 libnghttp2 libprotobuf-c) -lm
$(B)/bin/remuda-launch: $(call object,launcher/main.c launcher/static/event.c) $(B)/lib/launcher.a $(B)/lib/remuda.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -static-pie -Wl,-z,relro,-z,now -Wl,--gc-sections,--strip-all $(LDFLAGS) -o $@ $^ $(launch_static)
