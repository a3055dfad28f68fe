# Targets that bring a clock, a loop and a server of their own: their names come first.
$(B)/fuzz/fuzz_lease $(B)/fuzz/fuzz_launch_door: LDFLAGS += -Wl,--allow-multiple-definition
