# Targets that bring a clock, a loop and a server of their own: their names come first.
$(B)/fuzz/fuzz_lease $(B)/fuzz/fuzz_launch_door: LDFLAGS += -Wl,--allow-multiple-definition
# This one brings a directory of its own, in memory.
$(B)/fuzz/fuzz_store_dir: LDFLAGS += $(foreach call,openat fstat fstatat read pread close unlinkat,-Wl,--wrap=$(call))
