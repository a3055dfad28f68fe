# What several unit tests share.
$(B)/tests/test_vendors $(B)/tests/test_discovery: $(call object,tests/unit/machine_text.c)
$(B)/tests/test_vendors $(B)/tests/test_discovery: LDFLAGS += $(call object,tests/unit/machine_text.c)
