# What several unit tests share.
$(B)/tests/test_vendors $(B)/tests/test_discovery $(B)/tests/test_links: $(call object,tests/unit/machine_text.c)
$(B)/tests/test_vendors $(B)/tests/test_discovery $(B)/tests/test_links: LDFLAGS += $(call object,tests/unit/machine_text.c)
