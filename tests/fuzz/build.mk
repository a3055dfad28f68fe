# A target that brings a clock, a loop and a server of its own: their names come first.
$(B)/fuzz/fuzz_lease: LDFLAGS += -Wl,--allow-multiple-definition
