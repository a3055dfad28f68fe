# remuda-launch runs in any image, also one without a C library: static, and only what it needs. The event loop is its
# own (launcher/static), since libsystemd is not to be had as an archive; TLS is mbedTLS, which fits into 2 MB (ADR 0098).
launch_static := $(shell pkg-config --libs --static jansson yaml-0.1 libnghttp2 libprotobuf-c) -lmbedtls -lmbedx509 -lmbedcrypto -lm
$(B)/bin/remuda-launch: $(call object,launcher/main.c launcher/static/event.c) $(B)/lib/launcher.a $(B)/lib/remuda.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -static-pie -Wl,-z,relro,-z,now -Wl,--gc-sections,--strip-all,-z,pack-relative-relocs $(LDFLAGS) -o $@ $^ $(launch_static)
# Only what is called of an object is linked into it: that is what keeps it below 2 MB.
CFLAGS_launcher        += -Os -ffunction-sections -fdata-sections
CFLAGS_launcher_static += -Os -ffunction-sections -fdata-sections
CFLAGS_lib_codec       += -ffunction-sections -fdata-sections
CFLAGS_lib_core        += -ffunction-sections -fdata-sections
CFLAGS_lib_io          += -ffunction-sections -fdata-sections
